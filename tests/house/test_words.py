"""The language of the tree follows the rules of ``words.py``, and each rule notices a breach."""

from __future__ import annotations

import pytest

from tests.house import words
from tests.house.architecture_rules import Sources, read_project
from tests.house.words import GLOSSARY, Rule

LONG = "word " * 21

# A rule, small trees that break it once, and small trees that do not.
EXAMPLES: list[tuple[Rule, list[Sources], list[Sources]]] = [
    (
        words.sentences_begin_with_their_subject,
        [
            {"stress/a.py": '"""What a run did."""\n'},
            {"stress/a.py": 'def f() -> None:\n    """Whether it ran."""\n'},
            {"stress/a.py": 'class A:\n    """\n    Of a run."""\n'},
            {"stress/a.py": 'async def f() -> None:\n    """The same for all."""\n'},
            {"pulsar_ml/a.pyx": 'cdef class A:\n    """Who may call."""\n'},
            {"pulsar_ml/a.pyi": 'def f() -> int:\n    """As many as there are."""\n'},
            {"pulsar_ml/a.pxd": "# Why a lock is taken.\n#\n# Origin  none\n"},
            {"pulsar_ml/a.c": "/* From here on: the list. */\n"},
            {"pulsar_ml/a.h": "// That of the list.\n"},
        ],
        [
            {"stress/a.py": '"""Whatever happens, a run ends."""\n'},
            {"stress/a.py": 'def f() -> None:\n    """Run.\n\n    What is left stays."""\n'},
            {"stress/a.py": 'TEXT = """What a user typed."""\n'},
            {"pulsar_ml/a.pxd": "# A lock.\n#\n# What it is not: fair.\n"},
            {"stress/a.py": '"""As-is copies of a file."""\n'},
        ],
    ),
    (
        words.names_are_nouns,
        [
            {"stress/a.py": "told = 1\n"},
            {"stress/a.py": "def asked() -> None: ...\n"},
            {"stress/a.py": "class Given: ...\n"},
            {"stress/a.py": "def f(made: int) -> None: ...\n"},
            {"stress/a.py": "f(lost=1)\n"},
            {"stress/a.py": "self.saved = 1\n"},
            {"stress/a.py": "class A:\n    _told: int = 0\n"},
            {"stress/a.py": "import os as lost\n"},
            {"stress/a.py": "with f() as made: pass\n"},
            {"stress/a.py": "match x:\n    case [given]: pass\n"},
            {"stress/a.py": "x = [made for made in y]\n"},
            {"stress/told.py": ""},
            {"pulsar_ml/a.pyx": "cdef int made = 0\n"},
            {"pulsar_ml/a.pxd": "cdef struct A:\n    int told\n"},
            {"pulsar_ml/a.c": "int lost;\n"},
        ],
        [
            {"stress/a.py": "from hypothesis import given\n\n\n@given(x)\ndef f() -> None: ...\n"},
            {"stress/a.py": '"""A user is told."""\nmessage = "asked"  # made\n'},
            {"stress/a.py": "is_lost = 1\nmade_at = 2\n"},
            {"pulsar_ml/a.pyx": 'cdef int x = 0  # told\n"""made"""\ny = "lost"\n'},
            {"pulsar_ml/a.c": '/* told\n   asked */\nchar* a = "made"; // lost\n'},
        ],
    ),
    (
        words.lines_of_prose_fit,
        [
            {"docs/a.md": LONG},
            {"docs/a.md": f"- One.\n    {LONG}\n"},
            {"stress/a.py": f'"""One.\n\n{LONG}\n"""\n'},
            {"stress/a.py": f"x = 1  # {LONG}\n"},
            {"pulsar_ml/a.pyx": f'def f():\n    """{LONG}"""\n'},
            {"pulsar_ml/a.pxd": f"# {LONG}\n"},
            {"pulsar_ml/a.h": f"/* One.\n   {LONG} */\n"},
            {"pyproject.toml": f"# {LONG}\n"},
        ],
        [
            {"docs/a.md": f"| {LONG} |\n\n```\n{LONG}\n```\n"},
            {"docs/a.md": f"[x](https://example.org/{'x' * 90})\n"},
            {"stress/a.py": f'x = "{LONG}"\n'},
            {"pulsar_ml/a.c": f'char* a = "{LONG}";\n'},
            {"docs/a.md": "x" * 50 + " " + "y" * 49},
        ],
    ),
    (
        words.each_term_is_defined_once,
        [
            {GLOSSARY: "### run\n\nA.\n\n### Run\n\nB.\n"},
            {GLOSSARY: "### run\n\n### trial\n\nB.\n"},
            {GLOSSARY: "### run\n\nA.\n\n### trial\n"},
        ],
        [{GLOSSARY: "### run\n\nA.\n\n### run off\n\nB.\n"}],
    ),
    (
        words.terms_name_one_class,
        [
            {GLOSSARY: "### part\n\nA.\n", "stress/a.py": "class Part: ...\n",
             "spark/b.py": "class Part(Base): ...\n"},
            {GLOSSARY: "### build id\n\nA.\n\n## The cache\n", "stress/a.py": "class BuildId: ...\n",
             "pulsar_ml/b.pxd": "cdef struct BuildId:\n    int a\n"},
            {"stress/a.py": "class Tally: ...\n", "stress/b.py": "class Tally: ...\n"},
            {GLOSSARY: "### model\n\nA.\n", "stress/a.py": "class Model: ...\n",
             "stress/b.py": "class Model: ...\n", "pulsar_ml/specs/c.py": "class Model: ...\n"},
        ],
        [
            {GLOSSARY: "### part\n\nA.\n", "stress/a.py": "class Part: ...\n",
             "spark/b.py": "class Parts: ...\n", "tests/c.py": "class Part: ...\n"},
            {GLOSSARY: "### part\n\nA.\n", "pulsar_ml/b.pxd": "cdef class Part:\n    pass\n",
             "pulsar_ml/b.pyx": "cdef class Part:\n    pass\n"},
            {GLOSSARY: "### part\n\nA.\n",
             "pulsar_ml/b.pxd": "cdef struct Part\ncdef struct Part:\n    int a\n"},
            {GLOSSARY: "### model\n\nA.\n", "pulsar_ml/specs/a.py": "class Model: ...\n",
             "pulsar_ml/specs/b.py": "class Model: ...\n"},
            {GLOSSARY: "## The cache\n\n### range cache\n\nA.\n",
             "stress/a.py": "class RangeCache: ...\n",
             "pulsar_ml/b.pxd": "cdef struct RangeCache:\n    int a\n"},
        ],
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def project() -> Sources:
    return read_project()


@pytest.mark.parametrize("rule", words.RULES, ids=lambda rule: rule.__name__)
def test_rule(rule: Rule, project: Sources) -> None:
    found = list(map(str, rule(project)))
    assert not found, f"\n{len(found)} complaints\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("rule", "sources"),
    [
        pytest.param(rule, sources, id=f"{rule.__name__}-{number}")
        for rule, wrong, _ in EXAMPLES
        for number, sources in enumerate(wrong)
    ],
)
def test_a_breach_is_noticed(rule: Rule, sources: Sources) -> None:
    assert list(rule(sources))


@pytest.mark.parametrize(
    ("rule", "sources"),
    [
        pytest.param(rule, sources, id=f"{rule.__name__}-{number}")
        for rule, _, right in EXAMPLES
        for number, sources in enumerate(right)
    ],
)
def test_what_follows_a_rule_is_accepted(rule: Rule, sources: Sources) -> None:
    assert list(map(str, rule(sources))) == []


def test_every_rule_has_examples() -> None:
    assert [rule for rule, _, _ in EXAMPLES] == list(words.RULES)


def test_the_glossary_has_the_words_of_the_harness(project: Sources) -> None:
    assert {
        "execution", "program", "trial", "chunk", "wave", "run", "campaign", "class", "decision",
        "verdict", "model", "oracle", "judge", "suite", "subject", "place", "part", "record",
        "signature", "history", "seed", "engine", "strategy",
    } <= set(words.terms(project))  # fmt: skip
