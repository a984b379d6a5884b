package terminal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/florete/florete/internal/terminal"
)

func TestText(t *testing.T) {
	if got := terminal.Text("ü \x1b[2J\n\u202eb\x00"); got != "ü ·[2J··b·" {
		t.Errorf("%q", got)
	}
}

// TestWriter checks that a Writer replaces characters that could control a terminal, regardless of
// how the text is divided into writes, and that it keeps lines, tabs and colours.
func TestWriter(t *testing.T) {
	const in = "ü\ta\x1b[32mgreen\x1b[0m\n\x1b[2J\x1b[8mhidden\r\u009b2J\u202eb\x00\xff€"
	const want = "ü\ta\x1b[32mgreen\x1b[0m\n·[2J·[8mhidden··2J·b··€"
	var whole strings.Builder
	fmt.Fprint(terminal.Writer(&whole), in)
	if whole.String() != want {
		t.Errorf("%q", whole.String())
	}
	var table strings.Builder
	rows := terminal.NewTable(&table, "A", "B")
	rows.Row("x\ty\nz", "\x1b[32m")
	if err := rows.Flush(); err != nil || table.String() != "A      B\nx·y·z  ·[32m\n" {
		t.Errorf("%q, %v", table.String(), err)
	}
	if got := string(terminal.JSON([]byte("{\"a\": \"\u009b\u202e\U000e0001ü\"}\n"))); got != `{"a": "\u009b\u202e\udb40\udc01ü"}`+"\n" {
		t.Errorf("%q", got)
	}
	var one, line strings.Builder
	v := map[string][]string{"a": {"<\u009b"}}
	if err := errors.Join(terminal.PrintJSON(&one, v), terminal.PrintJSONLine(&line, v)); err != nil ||
		one.String() != "{\n  \"a\": [\n    \"<\\u009b\"\n  ]\n}\n" || line.String() != `{"a":["<\u009b"]}`+"\n" {
		t.Errorf("%q, %q, %v", &one, &line, err)
	}
	var bytewise strings.Builder
	w := terminal.Writer(&bytewise)
	for i := range len("ü€\x00") {
		fmt.Fprint(w, "ü€\x00"[i:i+1])
	}
	if bytewise.String() != "ü€·" {
		t.Errorf("%q", bytewise.String())
	}
}
