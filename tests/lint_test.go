package tests

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the layers in .golangci.yml")

// depguard writes the layers as golangci-lint reads them, so that an editor shows the reason
// beside the import. Longer prefixes win; $ ends a name.
func depguard() string {
	var b strings.Builder
	deny := func(prefix, why string) {
		fmt.Fprintf(&b, "            - { pkg: %s, desc: %q }\n", prefix, why)
	}
	rule := func(name string, files ...string) {
		fmt.Fprintf(&b, "        %s:\n          list-mode: lax\n          files: [%s]\n", name, strings.Join(files, ", "))
	}
	mains := func() {
		for _, p := range layers {
			deny(module+"/"+p+"/cmd", "a main is run, not imported")
		}
	}
	rule("root", `"${config-path}/*.go"`, `"!$test"`)
	fmt.Fprintln(&b, "          deny:")
	deny(module+"/", "the root package is the vocabulary of all parts and imports none")
	for i, p := range layers {
		rule(p, fmt.Sprintf(`"${config-path}/%s/**"`, p), fmt.Sprintf(`"!${config-path}/%s/cmd/**"`, p), `"!$test"`, `"!**/*test/*.go"`)
		if p == "tests" {
			fmt.Fprintln(&b, "          deny:")
			mains()
			continue
		}
		var why []string
		allow := make([]string, 0, len(shared))
		for _, s := range shared {
			if s.from == p {
				allow = append(allow, module+"/"+s.to+"$")
				why = append(why, fmt.Sprintf("%s (%s)", s.to, s.reason))
			}
		}
		if len(allow) > 0 {
			fmt.Fprintf(&b, "          allow: [%s]\n", strings.Join(allow, ", "))
		}
		fmt.Fprintln(&b, "          deny:")
		for j, q := range layers {
			switch {
			case j > i:
				deny(module+"/"+q, q+" is a higher layer than "+p)
			case j < i && len(why) == 0:
				deny(module+"/"+q, p+" shares nothing with "+q+": tests/house_test.go")
			case j < i:
				deny(module+"/"+q, "of lower layers "+p+" imports "+strings.Join(why, ", ")+": tests/house_test.go")
			}
		}
		deny(module+"/"+p+"/cmd", "a main is run, not imported")
	}
	rule("mains", `"**/cmd/**"`, `"!$test"`)
	fmt.Fprintln(&b, "          deny:")
	mains()
	return b.String()
}

// TestLinterLayers: golangci-lint holds the same layers as TestImports.
func TestLinterLayers(t *testing.T) {
	const name, begin, end = "../.golangci.yml", "        # layers: go test ./tests -update writes them\n", "        # end of layers\n"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s: no layers between %q and %q", name, begin, end)
	}
	want := before + begin + depguard() + end + after
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("%s: other layers than in house_test.go, want those: go test ./tests -update", name)
	}
}
