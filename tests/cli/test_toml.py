"""What is written reads back to the same tables, and every key knows its line."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from bismut.cli.runs.toml import line_of, lines_of, write

names = st.text('abcxyz_-0123 .é"', min_size=1, max_size=6)
values = st.recursive(
    st.one_of(st.booleans(), st.integers(-(2**62), 2**62), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda part: st.one_of(st.lists(part, max_size=3), st.dictionaries(names, part, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(names, values, max_size=4))
def test_written_tables_read_back(document):
    assert tomllib.loads(write(document, "a head\nof two lines")) == document


def test_every_table_and_key_knows_its_line():
    text = """# a comment
step = 0.1
"odd key" = [1,
  2, # steps = 7
  3]
words = '''
[no.table]
steps = 3
'''

[system] # a comment with a ]
name = "a # b"
[system.parameters]
x.y = { z = 1 }
[observe . energy]
of = "energy"
"""
    lines = lines_of(text)
    assert lines == {
        ("step",): 2,
        ("odd key",): 3,
        ("words",): 6,
        ("system",): 11,
        ("system", "name"): 12,
        ("system", "parameters"): 13,
        ("system", "parameters", "x"): 14,
        ("system", "parameters", "x", "y"): 14,
        ("observe",): 15,
        ("observe", "energy"): 15,
        ("observe", "energy", "of"): 16,
    }
    assert line_of(lines, ("system", "parameters", "x", "y", "z")) == 14
    assert line_of(lines, ("nothing",)) is None
