package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// PrintJSON prints the output of a command that is called with --json. The output is indented. An
// empty list is printed as [], and not as null. Times are Unix seconds, as in files and in the
// control API. Characters that could control a terminal are escaped.
func PrintJSON(w io.Writer, v any) error { return printJSON(w, v, "  ") }

// PrintJSONLine prints one object of a stream, such as an audit log, on a single line. Readers can
// then process each object before the stream ends.
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

// JSON returns the encoded JSON b with all characters escaped that could control a terminal.
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
