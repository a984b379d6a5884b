package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// PrintJSON writes what a command prints with --json, indented: a list is one array of objects,
// empty rather than null, and anything else is one object. Times are Unix seconds, as in files
// and in the operators' API. No character of it can steer a terminal.
func PrintJSON(w io.Writer, v any) error { return printJSON(w, v, "  ") }

// PrintJSONLine writes an object of a stream, such as an audit log or the events of activation,
// on a line of its own: what reads it need not wait for the end.
func PrintJSONLine(w io.Writer, v any) error { return printJSON(w, v, "") }

func printJSON(w io.Writer, v any, indent string) error {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	if err == nil {
		_, err = w.Write(JSON(out.Bytes()))
	}
	return err
}

// JSON returns JSON with the characters that could steer a terminal escaped.
func JSON(b []byte) []byte {
	var out strings.Builder
	for _, r := range string(b) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return []byte(out.String())
}
