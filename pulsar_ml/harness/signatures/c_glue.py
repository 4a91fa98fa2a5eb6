"""Glue in C and C++: a generated file with a function for each operation, and the table of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from pulsar_ml.harness.signatures.signature import SELF, Method, Parameter

TARGET = "object"  # the structure's name in generated code, which error messages show
SELF_WORD = re.compile(rf"\b{SELF}\b")

HEAD = """#include "{file}"
#include "pulsar_ml/harness/signatures/signatures.h"

typedef {type} PmlObject;
"""
OPERATION = """
/* {operation}: {text} */
static void pml_do_{operation}(void *pml_at, const int64_t *pml_drawn, PmlResult *pml_result)
{{
    {object}
{body}
}}
"""
OBJECT = {
    "c++": f"PmlObject &{TARGET} = *static_cast<PmlObject *>(pml_at);",
    "c": f"PmlObject *{TARGET} = (PmlObject *)pml_at;",
}
TAIL = """
static const PmlOperationFunction pml_functions[] = {{{functions}}};

static void pml_apply_all(void *instance, int32_t thread, const PmlCall *call, PmlResult *result,
                          PmlViolation *violation)
{{
    (void)thread;
    pml_name_object(instance, sizeof(PmlObject), {name});
    pml_apply_one(pml_functions[call->code], instance, call->arguments, result, violation);
}}

static void *pml_create_object(const int64_t *settings, int32_t threads)
{{
    if (!pml_create(settings, threads))
        return 0;
    pml_is_named = 0;
{create}
}}

static void pml_destroy_object(void *pml_at)
{{
    {object}
    (void){target};
    {destroy};
    pml_destroy(pml_at);
}}

static const PmlOperation pml_operations[] = {{
{rows}
}};
static const PmlSubject pml_subject = {{
    PML_SUBJECT_ABI, {count}, 0, 0, {name}, {name}, pml_operations, &PML_NO_SETTING,
    pml_create_object, pml_apply_all, pml_check, pml_destroy_object}};
{linkage}__attribute__((visibility("default"), used))
const PmlSubject *const pml_tests[] = {{&pml_subject}};
"""


def unit(
    file: Path,
    language: str,
    *,
    name: str,
    type: str,
    methods: Sequence[Method],
    roles: Sequence[int],
    create: str,
    destroy: str,
) -> str:
    """The generated file for the structure ``type`` that ``file`` declares.

    ``roles`` has a number for each method: 0, or that of the operations which one thread calls.
    ``create`` is an expression for a pointer to a new one, or one that initialises ``self``.
    """
    rows = ",\n".join(row(each, role) for each, role in zip(methods, roles, strict=True))
    return "".join(
        [
            HEAD.format(file=file, type=type),
            *(
                OPERATION.format(
                    operation=each.operation,
                    text=each.text.replace("*/", "* /"),
                    object=OBJECT[language],
                    body="\n".join(f"    {line}" for line in body(each, language)),
                )
                for each in methods
            ),
            TAIL.format(
                functions=", ".join(f"pml_do_{each.operation}" for each in methods),
                create="\n".join(f"    {line}" for line in creation(create, language)),
                object=OBJECT[language],
                target=TARGET,
                destroy=with_target(destroy, language) if destroy else deletion(language),
                rows=rows,
                count=len(methods),
                name=json.dumps(name),
                linkage='extern "C" ' if language == "c++" else "",
            ),
        ]
    )


def with_target(expression: str, language: str) -> str:
    """Replace the word ``self``, a pointer to the structure, by what generated code calls it."""
    return SELF_WORD.sub(f"(&{TARGET})" if language == "c++" else TARGET, expression)


def creation(create: str, language: str) -> list[str]:
    if create and not SELF_WORD.search(create):
        return [f"return {create};"]
    fresh = "new PmlObject()" if language == "c++" else "calloc(1, sizeof(PmlObject))"
    if not create:
        return [f"return {fresh};"]
    return [
        f"void *pml_at = {fresh};",
        "if (!pml_at)",
        "    return 0;",
        OBJECT[language],
        f"{with_target(create, language)};",
        "return pml_at;",
    ]


def deletion(language: str) -> str:
    return f"delete &{TARGET}" if language == "c++" else f"free({TARGET})"


def body(method: Method, language: str) -> list[str]:
    """The statements that make the arguments, call the method, and keep its answer."""
    lines = []
    drawn = 0
    for each in method.parameters:
        if each.output:
            zero = "{}" if language == "c++" else " = {0}"
            lines.append(f"{each.type} {each.name}{zero};")
        else:
            lines.append(f"{argument(each, drawn, language)};")
            drawn += 1
    written = [each.name for each in method.outputs]
    if language == "c++":
        target, member = (f"&{TARGET}" if method.on >= 0 else TARGET), "."
        call = method.call(target, member)
        more = "".join(f", {name}" for name in written)
        return [*lines, f"pml_answer(pml_result, ({call}, PmlVoid()){more});"]
    call = (
        method.call(TARGET, "") if method.on >= 0 else f"{method.name}({', '.join(names(method))})"
    )
    unused = [f"(void){TARGET};"] if method.on < 0 else []
    return [*unused, *lines, *answer_in_c(method, call)]


def names(method: Method) -> list[str]:
    return [("&" if each.output == "*" else "") + each.name for each in method.parameters]


def argument(parameter: Parameter, number: int, language: str) -> str:
    drawn = f"pml_drawn[{number}]"
    declared = f"{parameter.type} {parameter.name}"
    if language == "c++":
        return f"{declared} = PmlArgumentOf<{parameter.type}>::from({drawn})"
    if parameter.type.endswith("*"):
        return f"{declared} = ({parameter.type})(intptr_t){drawn}"
    return f"{declared} = ({parameter.type}){drawn}"


def answer_in_c(method: Method, call: str) -> list[str]:
    """The statements that call the method and keep its answer, by the type that is declared."""
    add = [f"pml_add_word(pml_result, (int64_t){each.name});" for each in method.outputs]
    if method.result in ("", "void"):
        return [f"{call};", *add]
    lines = [f"{method.result} pml_answer = {call};"]
    if method.flag and add:
        return [*lines, "if (pml_answer) {", *(f"    {line}" for line in add), "}"]
    if method.flag:
        return [*lines, "pml_put_flag(pml_result, pml_answer);"]
    if method.result.endswith("*"):
        opaque = method.result.replace("const ", "").replace(" ", "") == "void*"
        word = "(int64_t)(intptr_t)pml_answer" if opaque else "(int64_t)*pml_answer"
        return [*lines, "if (pml_answer)", f"    pml_put_word(pml_result, {word});", *add]
    return [*lines, "pml_put_word(pml_result, (int64_t)pml_answer);", *add]


def row(method: Method, role: int) -> str:
    arguments = ", ".join(
        f"{{{json.dumps(each.name)}, {each.low}LL, {each.high}LL}}" for each in method.arguments
    )
    return (
        f'    {{"{method.operation}", 1, {role}, {len(method.arguments)}, 0, '
        f"{{{arguments or '{0, 0, 0}'}}}}}"
    )
