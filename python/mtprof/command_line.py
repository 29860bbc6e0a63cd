# SPDX-License-Identifier: Apache-2.0
"""Command lines of the programs that belong to the mtprof command: options, help, completion, in its layout."""
import collections
import difflib
import os
import sys
import textwrap

Option = collections.namedtuple("Option", "name letter value help parse", defaults=(None, None, None, None))


class Misuse(Exception):
    """A wrong command line, and what can be done about it."""

    def __init__(self, text, hint=None):
        super().__init__(text)
        self.hint = hint


def reader_left():
    """Lets Python end in silence after a BrokenPipeError: a reader that goes away (`| head`) is no failure."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class CommandLine:
    """The options of `mtprof WORD`. Those that the program does not take itself (ends) end the options."""

    def __init__(self, word, usage, summary, details, options, ends=()):
        self.word, self.usage, self.summary, self.details = word, usage, summary, details
        self.options, self.ends = options, ends

    def misuse(self, text, hint=None):
        """An error to raise."""
        return Misuse(text, hint or f"'mtprof {self.word} --help' lists the options")

    def _find(self, word):
        for option in self.options:
            if word == "--" + option.name or (option.letter and word == "-" + option.letter):
                return option
        near = difflib.get_close_matches(word, ["--" + option.name for option in self.options], 1)
        raise self.misuse(f"unknown option '{word}'", f"did you mean '{near[0]}'?" if near else None)

    def _value(self, option, text):
        try:
            return option.parse(text) if option.parse else text
        except ValueError as error:
            raise self.misuse(f"option '--{option.name}': '{text}' is not {error}") from None

    def parse(self, words):
        """(settings by option's name, the other words); Misuse."""
        given, rest = {}, list(words)
        while rest and rest[0].startswith("-") and rest[0] not in ("-", "--") and rest[0][:2] not in self.ends:
            word = rest.pop(0)
            name, equals, text = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
            option = self._find(name)
            if option.value is None:
                if equals:
                    raise self.misuse(f"option '{name}' takes no value, got '{text}'")
                given[option.name] = True
                continue
            if not equals:
                if not rest:
                    raise self.misuse(f"option '{name}' needs a value, {option.value}")
                text = rest.pop(0)
            given[option.name] = self._value(option, text)
        return given, rest

    def print_help(self):
        """The options, in the layout of the command's other helps."""
        lines = [f"usage: {self.usage}", "", self.summary, ""]
        for option in self.options:
            letter = f"-{option.letter}," if option.letter else "   "
            name = f"  {letter} --{option.name} {option.value or ''}".rstrip()
            text = textwrap.wrap(option.help, 80 - 27, break_on_hyphens=False)
            if len(name) >= 26:
                lines.append(name)
                name = ""
            lines.append(f"{name:27}{text[0]}")
            lines += [" " * 27 + line for line in text[1:]]
        for paragraph in self.details.split("\n\n"):
            lines += ["", textwrap.fill(paragraph, 80)]
        try:
            print("\n".join(lines), flush=True)
        except BrokenPipeError:
            reader_left()

    def complete(self, words):
        """Words that may come next, a line each, with a tab and what they mean; ":files" for files."""
        current = words[-1] if words else ""
        before = words[-2] if len(words) > 1 else ""
        try:
            _, rest = self.parse(words[:-1])
        except Misuse:
            rest = []  # an option waits for its value
        waiting = [o for o in self.options if o.value and before in ("--" + o.name, f"-{o.letter}")]
        if waiting and not rest:
            if waiting[0].value in ("FILE", "FOLDER"):
                print(":files")
        elif current.startswith("-") and not rest:
            for option in self.options:
                if ("--" + option.name).startswith(current):
                    print(f"--{option.name}\t{option.help}")
        else:
            print(":files")
