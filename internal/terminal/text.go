// Package terminal contains functions with which command-line programs talk to people: safe
// printing of untrusted text, tables, JSON, questions, groups of commands, and suggestions for
// misspelled names.
package terminal

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text makes untrusted text safe to print. It returns s on one line, with a dot in place of each
// character that could control a terminal.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, s)
}

// colours lists the only escape sequences that a Writer passes through. None of them hides text.
var colours = []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1;33m", "\x1b[0m"}

// Writer returns a writer through which untrusted text is safe to print. It writes to w and
// replaces each character that could control a terminal with a dot. It keeps newlines, tabs and
// colours.
func Writer(w io.Writer) io.Writer { return &writer{to: w} }

type writer struct {
	to   io.Writer
	rest []byte // first bytes of an incomplete character
}

func (w *writer) Write(b []byte) (int, error) {
	text := append(w.rest, b...)
	w.rest = nil
	var out []byte
next:
	for len(text) > 0 {
		for _, c := range colours {
			if strings.HasPrefix(string(text[:min(len(text), len(c))]), c) {
				out, text = append(out, c...), text[len(c):]
				continue next
			}
		}
		if !utf8.FullRune(text) {
			w.rest = append([]byte(nil), text...)
			break
		}
		r, size := utf8.DecodeRune(text)
		if r == '\n' || r == '\t' || unicode.IsPrint(r) && !(r == utf8.RuneError && size == 1) {
			out = append(out, text[:size]...)
		} else {
			out = append(out, "·"...)
		}
		text = text[size:]
	}
	if _, err := w.to.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
