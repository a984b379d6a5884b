package rename

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// token is a part of a text in Nix. Comments and white space are no tokens.
type token struct {
	start, end int
	kind       byte   // 'i' identifier, 's' string, 'p' path or URI, or a bracket or sign
	text       string // of identifiers and plain strings
	plain      bool   // a string in double quotes without interpolation
}

var (
	identifier = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_'-]*`)
	pathOrURI  = regexp.MustCompile(`^(~?[a-zA-Z0-9._+-]*(/[a-zA-Z0-9._+-]+)+/?|<[a-zA-Z0-9._+/-]+>|[a-zA-Z][a-zA-Z0-9+.-]*:[a-zA-Z0-9%/?:@&=+$,_.!~*'-]+)`)
	keyword    = regexp.MustCompile(`^(assert|else|if|in|inherit|let|or|rec|then|with)$`)
)

// next returns the token at or after an offset, and false at the end of the text. An error is a
// string or comment without an end.
func next(src string, at int) (token, bool, error) {
	for at < len(src) {
		rest := src[at:]
		switch {
		case strings.ContainsRune(" \t\r\n", rune(src[at])):
			at++
			continue
		case src[at] == '#':
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				return token{}, false, nil
			}
			at += end
			continue
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return token{}, false, fmt.Errorf("a comment without an end")
			}
			at += end + 4
			continue
		case src[at] == '"':
			return quoted(src, at)
		case strings.HasPrefix(rest, "''"):
			end, err := indented(src, at+2)
			return token{start: at, end: end, kind: 's'}, true, err
		case strings.HasPrefix(rest, "${"):
			return token{start: at, end: at + 2, kind: '{'}, true, nil
		}
		if found := pathOrURI.FindString(rest); found != "" {
			return token{start: at, end: at + len(found), kind: 'p'}, true, nil
		}
		if found := identifier.FindString(rest); found != "" {
			return token{start: at, end: at + len(found), kind: 'i', text: found}, true, nil
		}
		return token{start: at, end: at + 1, kind: src[at]}, true, nil
	}
	return token{}, false, nil
}

// quoted returns the string in double quotes at an offset.
func quoted(src string, start int) (token, bool, error) {
	var text strings.Builder
	plain := true
	for at := start + 1; at < len(src); {
		switch {
		case src[at] == '"':
			return token{start: start, end: at + 1, kind: 's', text: text.String(), plain: plain}, true, nil
		case src[at] == '\\' && at+1 < len(src):
			c := src[at+1]
			if escaped := strings.IndexByte("ntr", c); escaped >= 0 {
				c = "\n\t\r"[escaped]
			}
			text.WriteByte(c)
			at += 2
		case strings.HasPrefix(src[at:], "${"):
			plain = false
			end, err := closing(src, at+2)
			if err != nil {
				return token{}, false, err
			}
			at = end
		default:
			text.WriteByte(src[at])
			at++
		}
	}
	return token{}, false, fmt.Errorf("a string without an end")
}

// indented returns the end of a string in two single quotes, whose contents begin at an offset.
func indented(src string, at int) (int, error) {
	for at < len(src) {
		rest := src[at:]
		switch {
		case strings.HasPrefix(rest, "'''"), strings.HasPrefix(rest, "''$"):
			at += 3
		case strings.HasPrefix(rest, `''\`):
			at += 4
		case strings.HasPrefix(rest, "''"):
			return at + 2, nil
		case strings.HasPrefix(rest, "$${"):
			at += 3
		case strings.HasPrefix(rest, "${"):
			end, err := closing(src, at+2)
			if err != nil {
				return 0, err
			}
			at = end
		default:
			at++
		}
	}
	return 0, fmt.Errorf("a string without an end")
}

// closing returns the offset after the brace that closes an interpolation, whose contents begin at
// an offset.
func closing(src string, at int) (int, error) {
	for depth := 1; ; {
		t, ok, err := next(src, at)
		if err != nil || !ok {
			return 0, fmt.Errorf("an interpolation without an end")
		}
		switch t.kind {
		case '{':
			depth++
		case '}':
			depth--
		}
		if at = t.end; depth == 0 {
			return at, nil
		}
	}
}

// binding is a definition in a set, "a.b = value;".
type binding struct {
	names      []token // a and b, each an identifier or a plain string
	value, end int     // offsets of the value, and after the semicolon
}

// bindingAt returns the definition that begins at an offset. It returns false if there is something
// else, such as "inherit a;" or a name with an interpolation.
func bindingAt(src string, at int) (b binding, ok bool) {
	for {
		t, ok, err := next(src, at)
		if err != nil || !ok || t.kind != 'i' && !(t.kind == 's' && t.plain) {
			return b, false
		}
		b.names = append(b.names, t)
		if t, ok, err = next(src, t.end); err != nil || !ok || t.kind != '.' && t.kind != '=' {
			return b, false
		}
		if at = t.end; t.kind == '=' {
			break
		}
	}
	b.value = at
	var open []byte // brackets, 'l' for let, and 'w' for with and assert
	for {
		t, ok, err := next(src, at)
		if err != nil || !ok {
			return b, false
		}
		at = t.end
		top := byte(0)
		if len(open) > 0 {
			top = open[len(open)-1]
		}
		switch {
		case t.kind == '(' || t.kind == '[' || t.kind == '{':
			open = append(open, t.kind)
		case t.kind == 'i' && t.text == "let":
			open = append(open, 'l')
		case t.kind == 'i' && (t.text == "with" || t.text == "assert"):
			open = append(open, 'w')
		case t.kind == ')' || t.kind == ']' || t.kind == '}' || t.kind == 'i' && t.text == "in" && top == 'l':
			if len(open) == 0 {
				return b, false
			}
			open = open[:len(open)-1]
		case t.kind == ';' && top == 'w':
			open = open[:len(open)-1]
		case t.kind == ';' && len(open) == 0:
			b.end = at
			return b, true
		}
	}
}

// strings returns the plain strings between two offsets that have a text.
func plainStrings(src string, at, end int, text string) (all []token) {
	for at < end {
		t, ok, err := next(src, at)
		if err != nil || !ok || t.start >= end {
			return all
		}
		if t.kind == 's' && t.plain && t.text == text {
			all = append(all, t)
		}
		at = t.end
	}
	return all
}

// offset returns the offset of a line and a column, which count from 1, and false if the text has no
// such place.
func offset(src string, line, column int) (int, bool) {
	at := 0
	for ; line > 1; line-- {
		end := strings.IndexByte(src[at:], '\n')
		if end < 0 {
			return 0, false
		}
		at += end + 1
	}
	return at + column - 1, at+column-1 < len(src)
}

// edit replaces a part of a text.
type edit struct {
	start, end int
	text       string
}

// apply makes edits in a text. It returns false if two of them overlap.
func apply(src string, edits []edit) (string, bool) {
	edits = slices.Clone(edits)
	slices.SortFunc(edits, func(a, b edit) int { return a.start - b.start })
	edits = slices.Compact(edits)
	var out strings.Builder
	at := 0
	for _, e := range edits {
		if e.start < at {
			return "", false
		}
		out.WriteString(src[at:e.start] + e.text)
		at = e.end
	}
	return out.String() + src[at:], true
}

// quote writes a Nix string.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `${`, `\${`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(s) + `"`
}

// attribute writes the name of an attribute, in quotes if it needs them.
func attribute(name string) string {
	if identifier.FindString(name) == name && name != "" && !keyword.MatchString(name) {
		return name
	}
	return quote(name)
}
