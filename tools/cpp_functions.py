"""Finds functions in C++ tokens: where they start and end, their parameters, how deep they nest.

Works on formatted code of this repository, not on every C++: it follows braces, knows the heads of
namespaces, classes and functions, and inside a body the control statements. What it does not know
(initialisers, enums) it skips by brackets.
"""

from dataclasses import dataclass, field

OPEN = {"(": ")", "[": "]", "{": "}"}
CLOSE = {close: opening for opening, close in OPEN.items()}
# Words before a ( that is no parameter list, and first words of declarations without one.
NOT_NAMES = {"static_assert", "alignas", "decltype", "requires", "noexcept", "explicit",
             "__attribute__", "sizeof"}
NOT_DECLARATIONS = {"static_assert", "using", "typedef", "friend", "concept"}
ACCESS = {"public", "protected", "private"}


@dataclass
class Parameter:
    tokens: list

    @property
    def is_bool(self):
        words = [token for token in self.tokens if token != "const"]
        return bool(words) and words[0] == "bool" and \
            (len(words) == 1 or words[1] == "=" or words[1][0].isalpha() or words[1][0] == "_")


@dataclass
class Function:
    name: str
    line: int
    parameters: list
    is_public: bool
    body: range = None  # token numbers from { to }, None for a declaration
    end_line: int = 0


@dataclass
class _Scope:
    kind: str  # namespace, class
    public: bool
    head: list = field(default_factory=list)  # token numbers since the last ; { or }


def matching(tokens, at):
    """The number of the token that closes the bracket at `at`; the last one if none does."""
    depth = 0
    for number in range(at, len(tokens)):
        depth += tokens[number].text in OPEN
        depth -= tokens[number].text in CLOSE
        if depth == 0:
            return number
    return len(tokens) - 1


def skip_angles(tokens, at):
    """The number of the > that closes the < at `at`, or `at` if it is not a template bracket."""
    depth, number = 0, at
    while number < len(tokens):
        text = tokens[number].text
        if text in OPEN:
            number = matching(tokens, number)
        elif text == "<":
            depth += 1
        elif text == ">":
            depth -= 1
            if depth == 0:
                return number
        elif text in (";", "}", "]", ")"):
            return at
        number += 1
    return at


def split_parameters(texts):
    """The parameters between the parentheses, split at top-level commas."""
    parts, depth, part = [], 0, []
    for number, text in enumerate(texts):
        depth += text in OPEN or text == "<"
        depth -= text in CLOSE or (text == ">" and depth > 0)
        if text == "," and depth == 0:
            parts.append(Parameter(part))
            part = []
        else:
            part.append(text)
    if part and part != ["void"]:
        parts.append(Parameter(part))
    return parts


class FunctionFinder:
    """Walks the declarations of a file. REQUIRES: balanced brackets."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.functions = []
        self.scopes = [_Scope("namespace", True)]

    def run(self):
        at = 0
        while at < len(self.tokens):
            at = self._step(at)
        return self.functions

    def _step(self, at):
        scope, text = self.scopes[-1], self.tokens[at].text
        if text == ";":
            self._declaration(scope.head)
            scope.head = []
        elif text == "}":
            if len(self.scopes) > 1:
                self.scopes.pop()
            self.scopes[-1].head = []
        elif text == "{":
            return self._open(at)
        elif text in OPEN:
            end = matching(self.tokens, at)
            scope.head += range(at, end + 1)
            return end + 1
        elif text == ":" and self._is_access(scope):
            scope.public = self.tokens[scope.head[-1]].text == "public"
            scope.head = []
        else:
            scope.head.append(at)
        return at + 1

    def _is_access(self, scope):
        return len(scope.head) == 1 and self.tokens[scope.head[0]].text in ACCESS

    def _open(self, at):
        scope = self.scopes[-1]
        kind = self._kind(scope.head, at)
        if kind in ("namespace", "class", "struct", "union"):
            public = scope.public and kind != "class"
            self.scopes.append(_Scope("namespace" if kind == "namespace" else "class", public))
            return at + 1
        end = matching(self.tokens, at)
        if kind == "function":
            function = self._function(scope.head)
            function.body = range(at, end + 1)
            function.end_line = self.tokens[end].line
            self.functions.append(function)
            scope.head = []
        else:
            scope.head += range(at, end + 1)
        return end + 1

    def _kind(self, head, at):
        """What the { at `at` opens, by the tokens before it."""
        texts = [self.tokens[number].text for number in self._without_template(head)]
        if "namespace" in texts or texts[:1] == ["extern"] and texts[-1:] in (['"'], ["extern"]):
            return "namespace"
        if "enum" in texts:
            return "other"
        leading = [text for text in texts[:3] if text in ("class", "struct", "union")]
        parameters = self._parameter_list(head)
        if leading and parameters is None:
            return leading[0]
        if parameters is None:
            return "other"
        after = [self.tokens[number].text for number in head if number > parameters[1]]
        if ":" in after and self.tokens[at - 1].text not in (")", "}"):
            return "other"  # a member's {...} in a constructor's list
        return "function"

    def _without_template(self, head):
        """`head` without its template<...> and [[...]] prefixes."""
        rest = list(head)
        while rest:
            text = self.tokens[rest[0]].text
            if text == "template" and len(rest) > 1:
                end = skip_angles(self.tokens, rest[1])
            elif text == "[" and self.tokens[rest[0] + 1].text == "[":
                end = matching(self.tokens, rest[0])
            else:
                break
            rest = [number for number in rest if number > end]
        return rest

    def _parameter_list(self, head):
        """Token numbers of the ( and ) of a function's parameters, or None if it has none."""
        rest = self._without_template(head)
        place = 0
        while place < len(rest):
            number, text = rest[place], self.tokens[rest[place]].text
            if text == "operator":
                place += 2
                if self.tokens[number + 1].text in ("(", "["):
                    place += 1
                while place < len(rest) and self.tokens[rest[place]].text != "(":
                    place += 1
                continue
            if text in ("=", "{"):
                return None
            end = number
            if text == "<":
                end = skip_angles(self.tokens, number)
            elif text in OPEN:
                end = matching(self.tokens, number)
                if self._is_pointer_name(number, end):
                    return end + 1, matching(self.tokens, end + 1)
                if text == "(" and place > 0 and self._is_name(rest[place - 1]):
                    return number, end
            place += end - number + 1
        return None

    def _is_pointer_name(self, number, end):
        """Whether (...) is the (*name) of a pointer to a function, its parameters next."""
        return self.tokens[number + 1].text == "*" and end + 1 < len(self.tokens) and \
            self.tokens[end + 1].text == "("

    def _is_name(self, number):
        text = self.tokens[number].text
        previous = self.tokens[number - 1].text if number > 0 else ""
        is_operator = "operator" in (previous, self.tokens[max(0, number - 2)].text)
        return is_operator or text == ">" or \
            ((text[0].isalpha() or text[0] == "_") and text not in NOT_NAMES)

    def _function(self, head):
        opening, closing = self._parameter_list(head)
        rest = self._without_template(head)
        texts = [self.tokens[number].text for number in range(opening + 1, closing)]
        before = [self.tokens[number].text for number in rest if number < opening]
        name = before[-1]
        if "operator" in before:
            name = "".join(before[before.index("operator"):])
        elif name == ")":
            name = before[-2]  # (*name)
        return Function(name, self.tokens[rest[0]].line, split_parameters(texts),
                        self.scopes[-1].public)

    def _declaration(self, head):
        if not head or self.tokens[head[0]].text in NOT_DECLARATIONS:
            return
        parameters = self._parameter_list(head)
        if parameters is None:
            return
        name = self.tokens[parameters[0] - 1].text
        is_macro = name.isupper() and len(name) > 3
        if is_macro and self._without_template(head)[0] == parameters[0] - 1:
            return  # TYPED_TEST_SUITE(...) and the like: no function
        self.functions.append(self._function(head))


class _Nesting:
    """The deepest nesting of control statements in a body, and the line where it is."""

    def __init__(self, tokens, body):
        self.tokens = tokens[:body.stop]
        self.deepest = 0
        self.line = 0
        self._block(body.start, 0)

    def _text(self, at):
        return self.tokens[at].text if at < len(self.tokens) else ""

    def _block(self, at, depth):
        """The statements of the { at `at`; returns the number behind its }."""
        end = matching(self.tokens, at)
        at += 1
        while at < end:
            at = self._statement(at, depth)
        return end + 1

    def _statement(self, at, depth):
        text = self._text(at)
        if text == "{":
            return self._block(at, depth)
        if text in ("if", "for", "while", "switch", "do"):
            return self._control(at, depth + 1)
        if text in ("else", "try"):
            return self._statement(at + 1, depth)
        if text == "catch":
            return self._statement(self._behind_condition(at), depth)
        if text in ("case", "default"):
            return self._behind_label(at)
        if text == "[" and self._text(at + 1) == "[":
            return self._statement(matching(self.tokens, at) + 1, depth)  # an attribute
        return self._expression(at, depth)

    def _behind_label(self, at):
        while self._text(at) not in (":", ""):
            at = matching(self.tokens, at) if self._text(at) in OPEN else at
            at += 1
        return at + 1

    def _behind_condition(self, at):
        while self._text(at) not in ("(", ""):
            at += 1
        return matching(self.tokens, at) + 1

    def _control(self, at, depth):
        if depth > self.deepest:
            self.deepest, self.line = depth, self.tokens[at].line
        if self._text(at) == "do":
            at = self._statement(at + 1, depth)
            return self._expression(at, depth)
        is_if = self._text(at) == "if"
        at = self._statement(self._behind_condition(at), depth)
        if is_if and self._text(at) == "else":
            is_chain = self._text(at + 1) == "if"
            return self._control(at + 1, depth) if is_chain else self._statement(at + 1, depth)
        return at

    def _expression(self, at, depth):
        """Up to the ; of a statement; the bodies of lambdas in it are blocks."""
        while self._text(at) not in (";", ""):
            if self._text(at) == "{":
                at = self._block(at, depth)
            elif self._text(at) in ("(", "["):
                at = self._group(at, depth)
            elif self._text(at) in CLOSE:
                return at + 1
            else:
                at += 1
        return at + 1

    def _group(self, at, depth):
        end = matching(self.tokens, at)
        at += 1
        while at < end:
            at = self._block(at, depth) if self._text(at) == "{" else at + 1
        return end + 1


def find_functions(tokens):
    """Every function of the file, declarations included, in order."""
    return FunctionFinder(tokens).run()


def nesting(tokens, function):
    """(depth, line) of the deepest control statement in a function with a body."""
    result = _Nesting(tokens, function.body)
    return result.deepest, result.line
