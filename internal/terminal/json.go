package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// PrintJSON writes v as indented JSON, for commands with --json. An empty list is written as [],
// and times are Unix seconds, as in files and in the control API. Characters that could control a
// terminal are escaped.
func PrintJSON(w io.Writer, v any) error { return printJSON(w, v, "  ") }

// PrintJSONLine is like PrintJSON, but writes v on a single line. It is used for streams, such as
// an audit log, whose readers handle each line before the stream ends.
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

// JSON returns the encoded JSON b with an escape for each character that could control a terminal.
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

// Show prints a value: as JSON if the flag --json is set, and otherwise with the function text.
type Show func(v any, text func(io.Writer) error) error

// Shown adds the flag --json to a command, and returns what prints the result of the command.
func Shown(cmd *cobra.Command, usage string) Show {
	asJSON := cmd.Flags().Bool("json", false, usage)
	return func(v any, text func(io.Writer) error) error {
		if *asJSON {
			return PrintJSON(cmd.OutOrStdout(), v)
		}
		return text(cmd.OutOrStdout())
	}
}
