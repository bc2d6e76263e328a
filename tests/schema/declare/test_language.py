from __future__ import annotations

import pytest

from recordkit.errors import SchemaError
from recordkit.schema import Field


class TestParsing:
    @pytest.mark.parametrize(
        ("text", "dtype", "shape", "optional"),
        [
            ("int64", "int64", (), False),
            ("string?", "string", (), True),
            ("float32[768]", "float32", (768,), False),
            ("uint8[?,?,3]?", "uint8", (None, None, 3), True),
            (" float64 [ 2 , ? ] ? ", "float64", (2, None), True),
            ("float32[0]", "float32", (0,), False),
            ("datetime64:ns[?]", "datetime64:ns", (None,), False),
            ("timedelta64:25s", "timedelta64:25s", (), False),
        ],
    )
    def test_reads_dtype_shape_and_question_mark(
        self, text: str, dtype: str, shape: tuple[int | None, ...], optional: bool
    ) -> None:
        field = Field(text)

        assert (field.dtype, field.shape, field.optional) == (dtype, shape, optional)

    def test_spaces_are_not_kept(self) -> None:
        assert str(Field(" float64 [ 2 , ? ] ? ")) == "float64[2,?]?"

    def test_one_of_a_unit_is_the_unit(self) -> None:
        assert str(Field("datetime64:1ns")) == "datetime64:ns"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("flaot32", "'flaot32' is not a dtype a schema can hold\n  Did you mean 'float32'?"),
            ("float", "'float' is not a dtype a schema can hold\n  Write float32 or float64."),
            ("int", "'int' is not a dtype a schema can hold\n  Write int64."),
            (
                "float128",
                (
                    "'float128' is not a dtype a schema can hold\n"
                    "  Write float64, and store values with .astype(np.float64)."
                ),
            ),
            ("datetime64", "'datetime64' is not a dtype a schema can hold\n  Add the unit: datetime64:ns."),
            (
                "datetime64[ns]",
                "'datetime64[ns]' has no unit of time\n  A unit follows a colon: 'datetime64:ns', 'datetime64:ns[?]'.",
            ),
            (
                "datetime64:xs",
                "'datetime64:xs' has no unit of time NumPy knows\n  Units are Y M W D h m s ms us ns ps fs as.",
            ),
            (
                "float32[",
                (
                    "'float32[' is not a type\n  A type is a dtype, then its dimensions, then ? if it may be missing: "
                    "'int64', 'float32[768]', 'string[?]?'."
                ),
            ),
            (
                "float32[]",
                "'float32[]' has no dimensions between its brackets\n  Write 'float32' for a scalar.",
            ),
            (
                "float32[-1]",
                "'float32[-1]': '-1' is not a dimension\n  Dimensions are numbers, or ? for any length.",
            ),
            (
                "float32[99999,99999]",
                "'float32[99999,99999]' is larger than any record\n  A record holds less than 2 GiB.",
            ),
        ],
    )
    def test_what_is_no_type_is_refused_in_words(self, text: str, message: str) -> None:
        with pytest.raises(SchemaError) as caught:
            Field(text)

        assert str(caught.value) == message

    def test_too_many_dimensions_are_refused(self) -> None:
        with pytest.raises(SchemaError, match="has 33 dimensions"):
            Field(f"int64[{','.join(['?'] * 33)}]")
