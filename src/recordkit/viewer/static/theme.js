// Sets the last chosen theme before the page is drawn, so that it does not flash.
"use strict";
try {
  const chosen = localStorage.getItem("recordkit-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage the system's theme is used.
}
