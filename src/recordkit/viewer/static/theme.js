// Before the page is drawn, so that it does not flash: the theme that was chosen last, if any was.
"use strict";
try {
  const chosen = localStorage.getItem("recordkit-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage the system's theme is used.
}
