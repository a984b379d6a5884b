// Package terminal prints messages of command-line programs for people, and asks them questions. It
// makes untrusted text safe to print, prints tables and JSON, groups the commands in a program's
// help, and suggests corrections of misspelled names.
package terminal

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns untrusted text in a form that is safe to print in one line of a terminal. Each
// character that could control the terminal is replaced by a dot.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, s)
}

// colours lists the escape sequences that a Writer passes through. It replaces all others, because
// they could hide text.
var colours = []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1;33m", "\x1b[0m"}

// Writer returns a writer that replaces each character that could control a terminal by a dot, and
// writes the result to w. It keeps newlines, tabs and colours.
func Writer(w io.Writer) io.Writer { return &writer{to: w} }

type writer struct {
	to   io.Writer
	rest []byte // first bytes of a character whose other bytes are not written yet
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
