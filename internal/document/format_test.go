package document_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
)

func TestParseFormat(t *testing.T) {
	for text, want := range map[string]document.Format{"1.0": {1, 0}, "1.10": {1, 10}, "12.3": {12, 3}} {
		if f, err := document.ParseFormat(text); err != nil || f != want || f.String() != text {
			t.Errorf("%s: %v, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "1", "0.1", "1.01", "01.1", "1.0.0", "1.-1", " 1.0", "1.0\n", "10000.0"} {
		if f, err := document.ParseFormat(text); err == nil {
			t.Errorf("%q: %v", text, f)
		}
	}
}

func TestFormatOrder(t *testing.T) {
	for _, c := range []struct {
		f, o document.Format
		want bool
	}{{document.Format{1, 1}, document.Format{1, 0}, true},
		{document.Format{2, 0}, document.Format{1, 9}, true}, {document.Format{1, 10}, document.Format{1, 9}, true}, {document.Format{1, 0}, document.Format{1, 0}, false}, {document.Format{1, 9}, document.Format{2, 0}, false}} {
		if got := c.f.Newer(c.o); got != c.want {
			t.Errorf("%s newer than %s: %v", c.f, c.o, got)
		}
	}
}

// TestNewerFormat checks that a document with a newer format leads to a NewerFormatError, and not
// to an error about a changed body, whatever the body contains.
func TestNewerFormat(t *testing.T) {
	newer := document.Format{document.NewestFormat.Major, document.NewestFormat.Minor + 1}
	raw := `{"anything":"new"}`
	text := envelope(t, raw, func(e *document.Envelope) { e.Format = newer })
	_, err := document.Open(text, []byte(raw), "")
	var of *document.NewerFormatError
	if !errors.As(err, &of) || of.Format != newer {
		t.Fatal(err)
	}
	for _, part := range []string{"manifest of ursula, serial ", newer.String(), document.NewestFormat.String(), "upgrade"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %q in it", err, part)
		}
	}
}
