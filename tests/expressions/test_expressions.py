from __future__ import annotations

import copy
import itertools
import math
import operator
import pickle
import random
import struct
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordkit.columns import Batch, BytesColumn, Ragged
from recordkit.errors import SchemaError
from recordkit.expressions import Expression
from recordkit.schema import Schema, TensorProto

if TYPE_CHECKING:
    from collections.abc import Callable

NAN = float("nan")


def taken(text: str, **columns: Any) -> list[bool]:
    """Which rows a filter takes of columns given as lists or arrays; None in a list is a missing value."""
    made, valid = {}, {}
    for name, values in columns.items():
        rows = len(values)
        if isinstance(values, list):
            valid[name] = np.array([value is not None for value in values])
            fill = next((type(value)() for value in values if value is not None), 0)
            values = [fill if value is None else value for value in values]
            values = BytesColumn.of(values) if isinstance(fill, str | bytes) else np.array(values)
        made[name] = values
    mask = Expression(text).mask(Batch(made, rows, valid))
    assert mask.dtype == np.bool_
    return [bool(value) for value in mask]


def ragged(rows: list[list[Any]], *, text: bool = False) -> Ragged:
    values = [value for row in rows for value in row]
    offsets = np.cumsum([0, *map(len, rows)])
    return Ragged(BytesColumn.of(values, text=True) if text else np.array(values, np.int64), (offsets,))


class TestExpression:
    def test_names_stand_in_order_of_appearance_and_once(self) -> None:
        expression = Expression("b > 1 and (`a/x` is none or len(c) in [1]) and 3 in d and b < 9 and not e")

        assert expression.names == ("b", "a/x", "c", "d", "e")

    def test_text_is_given_back_as_it_was(self) -> None:
        expression = Expression(" a  <3")

        assert str(expression) == " a  <3"
        assert repr(expression) == "Expression(' a  <3')"

    def test_survives_pickling_and_copying(self) -> None:
        expression = Expression("a < 3")

        copies = [pickle.loads(pickle.dumps(expression)), copy.deepcopy(expression)]

        assert copies == [expression, expression]
        assert expression != Expression("a < 4")
        assert hash(copies[0]) == hash(expression)

    def test_cannot_be_changed(self) -> None:
        with pytest.raises(AttributeError, match="cannot be changed"):
            Expression("a").names = ()  # type: ignore[misc]

    def test_something_else_than_text_is_refused(self) -> None:
        with pytest.raises(TypeError, match="not int"):
            Expression(3)  # type: ignore[arg-type]


class TestMeaning:
    def test_comparisons_chain(self) -> None:
        assert taken("0 < x < 5", x=[0, 3, 5]) == [False, True, False]
        assert taken("0 < x <= y != 4", x=[1, 1, 5], y=[1, 4, 3]) == [True, False, False]

    def test_and_binds_closer_than_or_and_not_closer_than_and(self) -> None:
        assert taken("a or b and c", a=[True, False], b=[True, True], c=[False, False]) == [True, False]
        assert taken("not a and b", a=[False, True], b=[False, True]) == [False, False]

    def test_a_name_in_backquotes_may_hold_anything(self) -> None:
        columns = {"image/height": np.array([1, 2]), "and": np.array([1, 1]), "a`b": np.array([1, 1])}

        mask = Expression("`image/height` > 1 and `and` == 1 and `a``b` == 1").mask(Batch(columns, 2))

        assert mask.tolist() == [False, True]

    def test_len_is_a_field_where_nothing_is_called(self) -> None:
        assert taken("len == 2", len=[2, 3]) == [True, False]

    def test_missing_is_unknown_also_under_not(self) -> None:
        assert taken("x == 3", x=[3, 4, None]) == [True, False, False]
        assert taken("not x == 3", x=[3, 4, None]) == [False, True, False]
        assert taken("x not in [3]", x=[3, 4, None]) == [False, True, False]
        assert taken("x == 3 or y", x=[None, None], y=[True, False]) == [True, False]
        assert taken("not (x == 3 and y)", x=[None, None], y=[True, False]) == [False, True]

    @pytest.mark.parametrize("text", ["x is none", "x == none", "none == x", "x is None", "not x is not none"])
    def test_missing_is_found_by_none(self, text: str) -> None:
        assert taken(text, x=[3, None]) == [False, True]
        assert taken(f"not ({text})", x=[3, None]) == [True, False]

    def test_a_column_that_is_only_asked_for_none_is_not_made(self) -> None:
        def fail() -> np.ndarray[Any, Any]:
            raise AssertionError

        batch = Batch({"image": fail}, 2, {"image": np.array([True, False])})

        assert Expression("image is none").mask(batch).tolist() == [False, True]

    def test_text_is_compared_and_searched(self) -> None:
        names = ["cat", "", "cattle", "bobcat", "ca"]

        assert taken('x == "cat"', x=names) == [True, False, False, False, False]
        assert taken("x != 'cat'", x=names) == [False, True, True, True, True]
        assert taken('"cat" in x', x=names) == [True, False, True, True, False]
        assert taken('"" in x', x=names) == [True] * 5
        assert taken('x in ["ca", "cat"]', x=names) == [True, False, False, False, True]
        assert taken('x < "cat"', x=names) == [False, True, False, True, True]

    def test_a_match_across_two_values_hides_none_inside_the_second(self) -> None:
        assert taken('"aba" in x', x=["xab", "aba", "ab", "a"]) == [False, True, False, False]

    def test_membership_looks_among_many_values(self) -> None:
        tags = ragged([["cat", "dog"], [], ["cattle"]], text=True)

        assert taken('"cat" in x', x=tags) == [True, False, False]
        assert taken("3 in x", x=ragged([[1, 3], [], [2]])) == [True, False, False]
        assert taken("0.5 in x", x=np.array([[0, 0.5], [1, 2]], np.float32)) == [True, False]
        assert taken("y in x", x=ragged([[1, 3], [], [2]]), y=[3, 1, 1]) == [True, False, False]

    def test_membership_looks_through_all_dimensions(self) -> None:
        nested = Ragged(np.array([[1, 2], [3, 4], [5, 6]]), (np.array([0, 1, 2]), np.array([0, 1, 3])))
        pictures = Ragged.rectangular(np.arange(6), np.array([[2, 2], [1, 2], [0, 9]]))
        part = Ragged(np.array([3, 4, 5, 3]), (np.array([1, 2, 3]),))

        assert taken("3 in x", x=part) == [False, False]
        assert taken("6 in x", x=nested) == [False, True]
        assert taken("3 in x", x=pictures) == [True, False, False]
        assert taken("len(x) == 1", x=pictures) == [False, True, False]

    def test_rows_of_one_shape_may_hold_text_or_nothing(self) -> None:
        pairs = BytesColumn.of(["a", "b", "c", "a"]).reshape((2, 2))

        assert taken('"b" in x', x=pairs) == [True, False]
        assert taken("y in x and len(x) == 2", x=pairs, y=["c", "c"]) == [False, True]
        assert taken("1 in x or len(x) == 1", x=np.zeros((2, 0, 3))) == [False, False]

    def test_what_a_schema_decodes_can_be_asked(self) -> None:
        schema = Schema({"depth": "float64[?,?]", "name": "string?"}, sequences={"step": "int64", "words": "string[?]"})
        full = {"depth": [[1.5, 2]], "step": [4, 5], "words": [["q"], []]}
        rows = [full, {"depth": np.zeros((0, 2)), "name": "x", "step": [], "words": []}]
        batch = schema.decode(schema.encode_rows(rows))

        for text in ["2 in depth", "len(depth) > 0", "name is none", "5 in step", "len(step) == 2", '"q" in words']:
            Expression(text).check(schema)
            assert Expression(text).mask(batch).tolist() == [True, False]

    def test_length_counts_values_characters_or_bytes(self) -> None:
        assert taken("len(x) == 2", x=ragged([[1, 3], []])) == [True, False]
        assert taken("len(x) == 2", x=["né", "n"]) == [True, False]
        assert taken("len(x) == 3", x=["né".encode(), b"n"]) == [True, False]
        assert taken("len(x) == 2", x=np.zeros((1, 2, 3))) == [True]

    def test_escapes_are_the_usual_ones(self) -> None:
        text = 'x == "a\\"\\\\\\n\\t\\x41\\u00e9\\U0001F600"'

        assert taken(text, x=['a"\\\n\tAé😀', ""]) == [True, False]
        assert taken("x == b'\\xff\\x00'", x=[b"\xff\0", b""]) == [True, False]

    def test_constant_conditions_take_all_or_nothing(self) -> None:
        assert taken("true", x=[1, 2]) == [True, True]
        assert taken("1 < 2 < 1 or x == 1", x=[1, 2]) == [True, False]
        assert taken("x in []", x=[1, 2]) == [False, False]
        assert taken("x not in ()", x=[1, 2]) == [True, True]

    def test_no_rows_give_no_rows(self) -> None:
        columns: dict[str, Any] = {"x": np.zeros(0, np.int64), "t": BytesColumn.of([], text=True), "r": ragged([])}

        mask = Expression('x < 1.5 and "a" in t and t == t and 3 in r and t > "a"').mask(Batch(columns, 0))

        assert mask.tolist() == []


class TestNumbers:
    def test_int64_is_compared_with_floats_exactly(self) -> None:
        big = [2**53, 2**53 + 1, 2**63 - 1]

        assert taken("x == 9007199254740992.0", x=big) == [True, False, False]
        assert taken("x > 9007199254740992.0", x=big) == [False, True, True]
        assert taken("x < 9223372036854775808.0", x=big) == [True, True, True]
        assert taken("x == y", x=big, y=[float(value) for value in big]) == [True, False, False]
        assert taken("x < 1e300", x=big) == [True, True, True]

    def test_uint64_is_compared_with_anything_exactly(self) -> None:
        values = np.array([0, 2**63, 2**64 - 1], np.uint64)

        assert taken("x == 18446744073709551615", x=values) == [False, False, True]
        assert taken("x < 1.8446744073709552e19", x=values) == [True, True, True]
        assert taken("x > -1", x=values) == [True, True, True]
        assert taken("x > y", x=values, y=[-1, -1, -1]) == [True, True, True]

    def test_narrow_integers_may_meet_wide_literals(self) -> None:
        values = np.array([-128, 127], np.int8)

        assert taken("x < 300", x=values) == [True, True]
        assert taken("x < 18446744073709551615", x=values) == [True, True]
        assert taken("x == -129", x=values) == [False, False]

    def test_a_float32_is_found_by_the_decimal_it_was_written_as(self) -> None:
        values = np.array([0.1, 0.2, np.inf], np.float32)

        assert taken("x == 0.1", x=values) == [True, False, False]
        assert taken("x > 0.1", x=values) == [False, True, True]
        assert taken("x > 1e300", x=values) == [False, False, True]
        assert taken("x == 16777217", x=np.array([16777216], np.float32)) == [False]

    def test_narrow_floats_of_both_sorts_are_numbers(self) -> None:
        bfloat16 = ml_dtypes.bfloat16

        assert taken("x == 0.1", x=np.array([0.1, 1], bfloat16)) == [True, False]
        assert taken("x == 65536", x=np.array([1, np.inf], np.float16)) == [False, False]
        assert taken("x < y", x=np.array([0.5], bfloat16), y=np.array([1], np.uint8)) == [True]

    @pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
    def test_floats_of_eight_bits_are_numbers(self, dtype: Any) -> None:
        assert taken("x == 0.1", x=np.array([0.1, 1], dtype)) == [True, False]
        assert taken("x < 1e9", x=np.array([1, np.nan], dtype)) == [True, False]
        assert taken("x == 1000000", x=np.array([1, np.nan], dtype)) == [False, False]
        assert taken("x < y", x=np.array([0.5], dtype), y=np.array([1], np.uint8)) == [True]

    @pytest.mark.parametrize("op", ["==", "!=", "<", "<=", ">", ">="])
    def test_every_pair_of_awkward_numbers_compares_as_in_python(self, op: str) -> None:
        wide = [0, 1, -1, 2**24 + 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64 - 2**11]
        floats = [0.0, 0.5, -0.5, 2.0**24, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**64, 1e300, NAN, math.inf]
        columns = [np.array([value for value in wide if value < 2**63]), np.array([n for n in wide if n >= 0], "u8")]
        columns += [
            np.array(floats),
            np.array(floats[:9], "f4"),
            np.array([-128, 0, 127], "i1"),
            np.array([False, True]),
        ]

        for left, right in itertools.product(columns, columns):
            pairs = list(itertools.product(left.tolist(), right.tolist()))
            x, y = np.repeat(left, len(right)), np.tile(right, len(left))
            assert taken(f"x {op} y", x=x, y=y) == [OPS[op](*pair) for pair in pairs]
        for column, value in itertools.product(columns, [*wide, *floats[:-2]]):
            if column.dtype != np.float32 or value != 2.0**53 + 2:  # which is rounded there
                assert taken(f"x {op} {value!r}", x=column) == [OPS[op](one, value) for one in column.tolist()]
                assert taken(f"{value!r} {op} x", x=column) == [OPS[op](value, one) for one in column.tolist()]

    def test_nan_equals_nothing(self) -> None:
        assert taken("x != x", x=[NAN, 1.0]) == [True, False]
        assert taken("x != y", x=[NAN, 1.0], y=[1, 1]) == [True, False]
        assert taken("x < inf", x=[NAN, 1.0]) == [False, True]

    def test_complex_numbers_have_equality_only(self) -> None:
        assert taken("x == 1 or x == y", x=[1 + 0j, 1j, 2j], y=[0, 0, 2j]) == [True, False, True]
        with pytest.raises(SchemaError, match="complex128 has no order"):
            taken("x < 1", x=[1j])

    def test_truth_is_a_number(self) -> None:
        assert taken("x == true", x=[0, 1, 2]) == [False, True, False]
        assert taken("x == 1", x=[False, True]) == [False, True]


class TestTimes:
    def test_a_date_is_its_first_moment(self) -> None:
        times = np.array(["2024-05-01T00:00", "2024-05-01T12:30", "NaT"], "M8[ms]")

        assert taken('x > "2024-05-01"', x=times) == [False, True, False]
        assert taken('x == "2024-05-01T12:30:00Z"', x=times) == [False, True, False]
        assert taken('x != "2024-05-01"', x=times) == [False, True, True]
        assert taken('x in ["2024-05-01", "2023"]', x=times) == [True, False, False]

    def test_a_literal_beyond_the_unit_does_not_wrap(self) -> None:
        times = np.array(["2024-05-01"], "M8[ns]")

        assert taken('x < "9999-01-01"', x=times) == [True]
        assert taken('x > "0001-01-01"', x=times) == [True]
        assert taken('x == "9999-01-01"', x=times) == [False]

    def test_a_literal_finer_than_the_unit_lies_between(self) -> None:
        months = np.array(["2024-05", "2024-06"], "M8[M]")

        assert taken('x < "2024-05-02"', x=months) == [True, False]
        assert taken('x == "2024-05-02"', x=months) == [False, False]
        assert taken('x == "2024-06-01"', x=months) == [False, True]
        assert taken('x <= "1969-12-31T23:59:59.5"', x=np.array([-1, 0], "M8[s]")) == [True, False]

    def test_spans_are_a_number_and_a_unit(self) -> None:
        spans = np.array([90, 91], "m8[s]")

        assert taken('x <= "1.5m"', x=spans) == [True, False]
        assert taken("x == y", x=spans, y=np.array([90_000, 90_000], "m8[ms]")) == [True, False]

    def test_fields_of_differing_units_are_compared_exactly(self) -> None:
        days = np.array([10**9, 1], "M8[D]")

        assert taken("x > y", x=days, y=np.array([2**62, 2**62], "M8[ns]")) == [True, False]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ('at > "yesterday"', 'Write "2024-05-01"'),
            ('at > "2024-13-01"', "no such time: month must be"),
            ('at > "2024-05-01T12:00+02:00"', "in UTC"),
            ("at > 3", 'Write "2024-05-01"'),
            ('took > "soon"', "a number and a unit"),
            ('took > "1M"', "differ in length"),
            ("at > month", "differ in length"),
        ],
    )
    def test_other_texts_are_refused_in_words(self, text: str, words: str) -> None:
        schema = Schema({"at": "datetime64:ns", "took": "timedelta64:s", "month": "datetime64:M"})

        with pytest.raises(SchemaError, match=words):
            Expression(text).check(schema)


SCHEMA = Schema(
    {
        "label": "int64",
        "score": "float32?",
        "name": "string",
        "raw": "bytes",
        "photo": "jpeg",
        "flag": "bool",
        "tokens": "int64[?]",
        "tags": "string[?]",
        "box/size": "float32[2]",
        "z": "complex64",
        "tensor": TensorProto(),
    },
    sequences={"steps": "int64"},
)


class TestCheck:
    @pytest.mark.parametrize(
        "text",
        [
            "label == 3 and score < 0.5 and flag",
            'name in ["a"] and b"x" in raw and photo == b"" and "a" in name',
            '3 in tokens and "cat" in tags and 0.5 in `box/size` and 3 in steps',
            "len(tokens) > 1",
            "len(steps) > 1 and len(name) < 5 and len(tensor) > 1 and 3 in tensor and tensor is none",
            "z == 1",
            "label == true and flag == 1 and score is none",
        ],
    )
    def test_sound_filters_pass(self, text: str) -> None:
        Expression(text).check(SCHEMA)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "lable > 3",
                "lable: there is no such field\n  lable > 3\n  ^^^^^\n  Did you mean 'label'?",
            ),
            (
                "flag and label == 'cat'",
                (
                    "label: int64 cannot be compared with text\n"
                    "  flag and label == 'cat'\n"
                    "                    ^^^^^\n"
                    "  Write the number without quotes."
                ),
            ),
            (
                "name < 3",
                'name: string cannot be compared with a number\n  name < 3\n         ^\n  Write text in quotes: "3".',
            ),
            (
                "raw < 'a'",
                (
                    "raw: bytes cannot be compared with text\n"
                    "  raw < 'a'\n"
                    "        ^^^\n"
                    '  Bytes are written with a b before the quotes: b"cat".'
                ),
            ),
            (
                "name == raw",
                (
                    "name: string cannot be compared with bytes\n"
                    "  name == raw\n"
                    "          ^^^\n"
                    "  Only values of one kind compare."
                ),
            ),
            (
                "`box/size` > 3",
                (
                    "box/size: float32[2] holds many values a row\n"
                    "  `box/size` > 3\n"
                    "  ^^^^^^^^^^\n"
                    "  Compare len(`box/size`), or look for a value: 3 in `box/size`"
                ),
            ),
            (
                "steps == 3",
                (
                    "steps: int64 holds many values a row\n"
                    "  steps == 3\n"
                    "  ^^^^^\n"
                    "  Compare len(steps), or look for a value: 3 in steps"
                ),
            ),
            ("label", "label: int64 is not a condition by itself\n  label\n  ^^^^^\n  Compare it: label != 0"),
            (
                "len(label) > 1",
                "label: int64 has no length\n  len(label) > 1\n  ^^^^^^^^^^\n  Compare the value itself.",
            ),
            ("3 in label", "label: int64 has nothing in it\n  3 in label\n       ^^^^^\n  Write: label == value"),
            ("note is none", None),
            ("name == null", "null: there is no such field\n  name == null\n          ^^^^\n  Write none."),
            ("'a' in tokens", None),
            ("label in [1, 'a']", None),
            ("'x' == len(tokens)", None),
            ("z < 1", None),
        ],
    )
    def test_others_are_refused_with_the_place_shown(self, text: str, message: str | None) -> None:
        with pytest.raises(SchemaError) as caught:
            Expression(text).check(SCHEMA)

        assert message is None or str(caught.value) == message
        assert caught.value.field is not None

    def test_a_mapping_of_types_will_do(self) -> None:
        Expression("3 in a and b is none").check({"a": "int64[?]", "b": "float32?"})

    def test_literals_of_two_kinds_are_refused_where_no_field_is_to_blame(self) -> None:
        with pytest.raises(ValueError, match="a number cannot be compared with text"):
            Expression("1 == 'a'").check({})

    def test_a_batch_is_checked_as_a_schema_is(self) -> None:
        with pytest.raises(SchemaError, match=r"x: int64\[\?\] holds many values a row"):
            taken("x > 3", x=ragged([[1]]))
        with pytest.raises(SchemaError, match="y: there is no such field"):
            taken("y is none", x=[1])


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "there is nothing in it"),
            ("  ", "there is nothing in it"),
            ("a = 3", "= does not compare"),
            ("a === 3", "=== does not compare"),
            ("a <> 3", "Write !="),
            ("a => 3", "Write >="),
            ("a ≤ 3", "Write <="),
            ("a && b", "Write and"),
            ("a & b", "Write and"),
            ("!a", "Write not"),
            ("a AND b", "Write and"),
            ("NOT a", "Write not"),
            ("image/height > 3", "in backquotes: `image/height`"),
            ("image-height > 3", "in backquotes: `image-height`"),
            ("image.height > 3", "in backquotes: `image.height`"),
            ("a + 1 > 3", "no arithmetic"),
            ("a * 2 > 3", "no arithmetic"),
            ("a ** 2 > 3", "no arithmetic"),
            ("-a > 3", "no arithmetic"),
            ("-true > 3", "no arithmetic"),
            ("3a > 1", "in backquotes: `3a`"),
            ("1.2.3 == a", "a number runs into"),
            ("a == 99999999999999999999", "more than 64 bits"),
            ("a == -9223372036854775809", "more than 64 bits"),
            ("a ==", "the filter ends"),
            ("(a == 3", "expected \\)"),
            ("a == 3)", "found \\)"),
            ("a b", "expected and, or, or the end"),
            ("a == 3 4", "found a value"),
            ("a not 3", "expected in"),
            (
                "a[0] == 3",
                "filters cannot index a field\n(.*\n)+  To test whether it contains a value, write 3 in tokens",
            ),
            ("a is 3", "is goes with none only"),
            ("a < none", "neither small nor great"),
            ("3 is none", "only a field can be none"),
            ("none in a", "none is never in anything"),
            ("a in [none]", "none cannot be in a list"),
            ("a in [b]", "a list holds values only"),
            ("a in [1 2]", "expected , or ]"),
            ("a in [1", "expected , or ]"),
            ("a in 'abc'", "in needs a list or a field"),
            ("[1] in a", "to the right of in"),
            ("a == [1]", "a list is for in only"),
            ("(a < 3) == true", "a condition cannot be compared"),
            ("3", "no condition"),
            ("'a' or b", "no condition"),
            ("len(a)", "no condition"),
            ("len(3) > 1", "len takes the name of a field"),
            ("len(a, b) > 1", "expected \\)"),
            ("a == nan", "nan equals nothing, not even itself\n(.*\n)+  To find it, write score != score"),
            ("a == 'x", "the text has no end"),
            ("a == 'x\n'", "the text has no end"),
            ("a == 'x\\q'", "is not a valid escape"),
            ("a == '\\ud800'", "is not a valid escape"),
            ("a == b'\\u0041'", "is not a valid escape"),
            ("a == b'é'", "ASCII"),
            ("a == '\ud800'", "lone surrogate"),
            ("`a == 3", "the name has no end"),
            ("`` == 3", "no name in the backquotes"),
            ("a == 3 # all", "has no meaning here"),
            ("a; b", "has no meaning here"),
            ("a == \x1b[31m", "x1b' has no meaning here"),
        ],
    )
    def test_slips_are_answered_with_what_to_write(self, text: str, words: str) -> None:
        with pytest.raises(ValueError, match=words) as caught:
            Expression(text)

        assert "^" in str(caught.value)
        assert str(caught.value).startswith("filter: ")

    @pytest.mark.parametrize(
        "text",
        [
            "__import__('os').system('true')",
            "().__class__.__bases__",
            "a.__class__ == 3",
            "open('/etc/passwd')",
            "lambda: 3",
            "lambda x: x",
            "f'{a}' == 'x'",
            "rb'x' == a",
            "(a := 3)",
            "[x for x in a]",
            "{x: 1}",
            "a if b else c",
            "a[0] == 3",
            "len(a)(b)",
            "len(a.b) > 1",
            "'a'.join(b)",
            "'%s' % a",
            "exec(a)",
            "await a",
            "*a",
            "...",
            "a\nimport os",
            "0x1f == a",
            "1j == a",
        ],
    )
    def test_python_beyond_the_language_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"^filter: "):
            Expression(text)

    def test_long_texts_are_refused_before_they_are_read(self) -> None:
        with pytest.raises(ValueError, match="1000000 characters are too many"):
            Expression("a" * 1_000_000)

    @pytest.mark.parametrize("bomb", ["(" * 2000 + "a" + ")" * 2000, "not " * 1000 + "a", "a in " + "[" * 4000])
    def test_deep_nesting_is_refused(self, bomb: str) -> None:
        with pytest.raises(ValueError, match="nested more than 64 deep"):
            Expression(bomb)

    def test_long_chains_are_not_deep(self) -> None:
        assert taken(" and ".join(["x == 1"] * 370), x=[1, 2]) == [True, False]
        assert taken("not " * 64 + "x", x=[True, False]) == [True, False]

    def test_the_place_in_a_long_text_is_shown_with_what_is_around_it(self) -> None:
        with pytest.raises(ValueError, match="filter") as caught:
            Expression("a == 1 and " * 30 + "b = 3\n and " + "c " * 300)

        line, caret = str(caught.value).split("\n")[1:3]
        assert len(line) < 110
        assert line[caret.index("^")] == "="

    @given(st.text(max_size=60) | st.text("ab01 '\"`()[]<>=!,.-+/andortilse\\x", max_size=60))
    def test_any_text_is_a_filter_or_a_value_error_in_words(self, text: str) -> None:
        words = "filter: "

        try:
            Expression(text)
        except ValueError as error:
            words = str(error)

        assert words.startswith("filter: ")


# --- The law: a filter takes the rows that plain Python takes, one by one, in three-valued logic.
#
# Each strategy below draws a text together with a function of a row; the function never sees the text.

Row = dict[str, Any]
DAY = 86_400_000


class Drawn(NamedTuple):
    text: str
    of: Callable[[Row], Any]
    narrow: bool = False
    written: Any = None


POOLS: dict[str, list[Any]] = {
    "i": [0, 1, -1, 3, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)],
    "u": [0, 1, 3, 2**53 + 1, 2**63, 2**64 - 1],
    "b": [0, 1, 3, 127, -128],
    "f": [0.0, -0.0, 1.0, 0.1, 2.5, 2.0**53, 2.0**63, 2.0**64, float("inf"), -float("inf"), NAN],
    "g": [struct.unpack("f", struct.pack("f", value))[0] for value in (0.0, 0.1, 1.0, 2.5, 3.0, float("inf"), NAN)],
    "flag": [True, False],
    "name": ["", "a", "b", "ab", "aba", "né", "é", "cat"],
    "other name": ["", "a", "ab", "é"],
    "raw": [b"", b"a", b"ab", b"\xff"],
    "tokens": [[], [0], [1, 3], [3, 3, 2**53 + 1]],
    "tags": [[], ["a"], ["", "ab"], ["né", "cat", "b"]],
    "pair": [[0.0, 1.0], [2.5, 3.0], [NAN, 0.0]],
    "day": [0, 1, -1, 19_844, None],
    "at": [0, 1, DAY, 19_844 * DAY, 19_844 * DAY + 1, None],
}
NUMBERS, TEXTS = ["i", "u", "b", "f", "g", "flag"], ["name", "other name"]
DTYPES = {
    "i": "i8",
    "u": "u8",
    "b": "i1",
    "f": "f8",
    "g": "f4",
    "flag": "?",
    "pair": "f4",
    "day": "M8[D]",
    "at": "M8[ms]",
}
SCALES = {"day": DAY, "at": 1}
OPS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ISO: dict[str, int | Fraction] = {
    "1970-01-01": 0,
    "1970-01-01T00:00:00.001": 1,
    "2024-05-01": 19_844 * DAY,
    "2024-05": 19_844 * DAY,
}
ISO |= {"2024-05-01 00:00:00.0005Z": 19_844 * DAY + Fraction(1, 2), "1969-12-31T23:59": -60_000}


def column_of(name: str, values: list[Any]) -> Any:
    if name in ("name", "other name", "raw"):
        return BytesColumn.of(values, text=name != "raw")
    if name in ("tokens", "tags"):
        return ragged(values, text=name == "tags")
    if name in SCALES:
        return np.array([np.iinfo(np.int64).min if value is None else value for value in values], "i8").view(
            DTYPES[name]
        )
    return np.array(values, DTYPES[name]).reshape((len(values), 2) if name == "pair" else len(values))


def field(name: str) -> Drawn:
    scale = SCALES.get(name)

    def of(row: Row) -> Any:
        value, present = row[name]
        if not present:
            return None
        return value if scale is None else NAN if value is None else value * scale

    return Drawn(f"`{name}`" if " " in name else name, of, name in ("g", "pair"))


def literal(value: Any) -> Drawn:
    words = {True: "true", False: "False"} if isinstance(value, bool) else {}
    return Drawn(words.get(value) or repr(value), lambda row: value, written=value)


def rounded(one: Drawn, other: Drawn, row: Row) -> Any:
    """The value of one side; a literal float beside a float32 is the nearest float32."""
    value = one.of(row)
    if other.narrow and isinstance(one.written, float) and abs(value) < 1e38:
        return struct.unpack("f", struct.pack("f", value))[0]
    return value


def known(test: Callable[[Any, Any], bool], left: Drawn, right: Drawn) -> Callable[[Row], bool | None]:
    def of(row: Row) -> bool | None:
        values = rounded(left, right, row), rounded(right, left, row)
        return None if None in [value if value is None else 0 for value in values] else bool(test(*values))

    return of


LITERALS = {
    "number": st.sampled_from(
        [0, 1, -1, 3, 2.5, 0.1, 1e39, 2.0**53, 2**53 + 1, 2**63, 2.0**63, 2.0**64, 2**64 - 1, True]
    ),
    "text": st.sampled_from(["", "a", "ab", "né", "é", "cat", "ba"]),
    "bytes": st.sampled_from([b"", b"a", b"ab", b"\xff"]),
}


@st.composite
def sides(draw: st.DrawFn, group: str) -> Drawn:
    if group == "time":
        text = draw(st.sampled_from(sorted(ISO)))
        time: Drawn = draw(st.sampled_from([field("day"), field("at"), Drawn(f'"{text}"', lambda row: ISO[text])]))
        return time
    names = {"number": NUMBERS, "text": TEXTS, "bytes": ["raw"]}[group]
    if group == "number" and draw(st.integers(0, 4)) == 0:
        many = draw(st.sampled_from(["tokens", "tags", "pair", "name", "raw"]))
        inner = field(many)
        return Drawn(f"len({many})", lambda row: None if inner.of(row) is None else len(inner.of(row)))
    side: Drawn = draw(st.sampled_from(names).map(field) | LITERALS[group].map(literal))
    return side


@st.composite
def comparisons(draw: st.DrawFn) -> Drawn:
    group = draw(st.sampled_from(["number", "number", "text", "bytes", "time"]))
    parts = [draw(sides(group)) for _ in range(draw(st.integers(2, 3)))]
    if group == "time":
        # Two texts side by side would be compared as text.
        odd, times = draw(st.integers(0, 1)), field(draw(st.sampled_from(["day", "at"])))
        parts = [part if index % 2 == odd else times for index, part in enumerate(parts)]
    ops = [draw(st.sampled_from(sorted(OPS))) for _ in parts[1:]]
    tests = [known(OPS[op], left, right) for left, op, right in zip(parts, ops, parts[1:], strict=False)]
    text = parts[0].text + "".join(f" {op} {part.text}" for op, part in zip(ops, parts[1:], strict=True))
    return Drawn(text, lambda row: every([test(row) for test in tests]))


@st.composite
def memberships(draw: st.DrawFn) -> Drawn:
    word, negated = draw(st.sampled_from([("in", False), ("not in", True)]))
    where, group = draw(st.sampled_from([("tokens", "number"), ("tags", "text"), ("pair", "number"), ("name", "text"),
                                         ("raw", "bytes"), ("", "number"), ("", "text")]))  # fmt: skip
    left = draw(sides(group))
    if where:
        right, text = field(where), where
        test = known(lambda a, b: a in b if isinstance(b, str | bytes) else any(a == value for value in b), left, right)
    else:
        items = draw(st.lists(LITERALS[group].map(literal), max_size=3))
        text = f"[{', '.join(item.text for item in items)}]"
        tests = [known(operator.eq, left, item) for item in items]
        test = lambda row: None if left.of(row) is None else any(one(row) for one in tests)  # noqa: E731
    return Drawn(f"{left.text} {word} {text}", lambda row: invert(test(row)) if negated else test(row))


def every(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def invert(value: bool | None) -> bool | None:
    return None if value is None else not value


def joined(parts: list[Drawn], word: str) -> Drawn:
    text = f" {word} ".join(f"({part.text})" for part in parts)
    if word == "and":
        return Drawn(text, lambda row: every([part.of(row) for part in parts]))
    return Drawn(text, lambda row: invert(every([invert(part.of(row)) for part in parts])))


NONES = st.sampled_from(sorted(POOLS)).map(lambda name: Drawn(f"`{name}` is none", lambda row: not row[name][1]))
CONDITIONS = st.recursive(
    comparisons() | memberships() | NONES | st.just(field("flag")),
    lambda inner: (
        st.builds(joined, st.lists(inner, min_size=2, max_size=3), st.sampled_from(["and", "or"]))
        | inner.map(lambda part: Drawn(f"not ({part.text})", lambda row: invert(part.of(row))))
    ),
    max_leaves=5,
)


def rows_of(seed: int, count: int) -> list[Row]:
    """Many rows at little cost: each field a value of its pool, and whether it is there."""
    pick = random.Random(seed)
    return [{name: (pick.choice(pool), pick.random() > 0.2) for name, pool in POOLS.items()} for _ in range(count)]


ROWS = st.builds(rows_of, st.integers(0, 2**32), st.integers(0, 60))


class TestLaw:
    @settings(max_examples=400, deadline=None)
    @given(CONDITIONS, ROWS)
    def test_takes_the_rows_that_plain_python_takes(self, condition: Drawn, rows: list[Row]) -> None:
        columns = {name: column_of(name, [row[name][0] for row in rows]) for name in POOLS}
        valid = {name: np.array([row[name][1] for row in rows], np.bool_) for name in POOLS}

        mask = Expression(condition.text).mask(Batch(columns, len(rows), valid))

        assert mask.tolist() == [condition.of(row) is True for row in rows]
