package tests

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/agent/forward/wire"
)

// errorsPage is the reference of errors.
const errorsPage = "../docs/reference/errors.md"

// The forms in which the code writes them. A class is a word of Go there, and of the wire on the page.
var (
	codeLiteral   = regexp.MustCompile(`Code\{(?:Name: )?"([a-z0-9-]+)", (?:Class: )?(?:hostapi\.)?(Transient|Denied|Invalid)\}`)
	reasonLiteral = regexp.MustCompile(`(?:because[A-Z]\w* *= |doubt = |r\.Reason, [^=]*= )"([a-z0-9-]+)"`)
	codeRow       = regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\| (transient|denied|invalid) \\|")
	reasonRow     = regexp.MustCompile("(?m)^\\| (`[a-z0-9-]+`(?:, `[a-z0-9-]+`)*) \\| ")
)

// TestErrorsPage checks that the page has a row for each code of an error with its class, and for each reason
// of a forwarder, and no other rows.
func TestErrorsPage(t *testing.T) {
	codes, reasons := map[string]bool{}, map[string]bool{"other": true} // of telemetry.Counters
	for code := wire.Done; !strings.HasPrefix(code.String(), "code-"); code++ {
		reasons[code.String()] = true
	}
	for _, part := range []string{"internal", "providers", "activation", "agent", "nix"} {
		err := filepath.WalkDir(filepath.Join("..", part), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, m := range codeLiteral.FindAllSubmatch(source, -1) {
				codes[string(m[1])+" "+strings.ToLower(string(m[2]))] = true
			}
			if strings.Contains(path, "forward") {
				for _, m := range reasonLiteral.FindAllSubmatch(source, -1) {
					reasons[string(m[1])] = true
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(codes) < 40 || len(reasons) < 25 {
		t.Fatalf("%d codes and %d reasons in the code: are they written in another way?", len(codes), len(reasons))
	}

	text, err := os.ReadFile(errorsPage)
	if err != nil {
		t.Fatal(err)
	}
	providers, forwarder, ok := strings.Cut(string(text), "\n## Reasons of the forwarder\n")
	if !ok {
		t.Fatalf("%s: no heading for the reasons of the forwarder", errorsPage)
	}
	rows, reasonRows := map[string]bool{}, map[string]bool{}
	for _, m := range codeRow.FindAllStringSubmatch(providers, -1) {
		rows[m[1]+" "+m[2]] = true
	}
	for _, m := range reasonRow.FindAllStringSubmatch(forwarder, -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			reasonRows[strings.Trim(name, "`")] = true
		}
	}
	compareRows(t, "code and class", codes, rows)
	compareRows(t, "reason", reasons, reasonRows)
}

// compareRows reports what only one of the code and the page has.
func compareRows(t *testing.T, what string, code, page map[string]bool) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(code)) {
		if !page[name] {
			t.Errorf("%s: no row for the %s %q", errorsPage, what, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(page)) {
		if !code[name] {
			t.Errorf("%s: a row for the %s %q, which no code has", errorsPage, what, name)
		}
	}
}
