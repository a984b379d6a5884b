package printable_test

import (
	"testing"

	"github.com/florete/florete/providers/printable"
)

func TestText(t *testing.T) {
	if got := printable.Text("ü \x1b[2J\n\u202eb\x00"); got != "ü ·[2J··b·" {
		t.Errorf("%q", got)
	}
}
