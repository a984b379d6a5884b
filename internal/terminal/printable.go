// Package terminal makes text that another host or a stranger wrote safe to print.
package terminal

import (
	"strings"
	"unicode"
)

// Text is s on one line, with a dot in place of each character that could steer a terminal.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, s)
}
