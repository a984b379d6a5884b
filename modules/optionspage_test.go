package modules_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// option is an option of the modules as their documentation shows it.
type option struct {
	Name, Type, Description, Default, Example string
	ReadOnly                                  bool
}

const optionsPage = "../docs/reference/nixos-options.md"

// optionGroups are the headings of the page, by the prefix of names after services.florete.
var optionGroups = []struct{ prefix, title string }{
	{"", "The cluster of a host"},
	{"host.", "Activation"},
	{"forwarder.", "Forwarder"},
	{"provider.", "Providers"},
	{"ssh.", "Logins over SSH"},
	{"confirm.", "Going back by itself"},
	{"needs", "Read by your configuration"},
	{"units", "Units"},
}

// checkOptionsPage compares the page of the options with the modules.
func checkOptionsPage(t *testing.T, all []option) {
	t.Helper()
	want := optionsText(all)
	if *update {
		if err := os.WriteFile(optionsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(optionsPage); err != nil || string(got) != want {
		t.Errorf("%s is not what the modules give (%v): go test ./modules -run TestModules -update", optionsPage, err)
	}
}

func optionsText(all []option) string {
	var b strings.Builder
	b.WriteString(`# NixOS options

For whoever configures a NixOS host of a cluster: every option of the module
` + "`nixosModules.default`" + `, made from the modules themselves. [Add a NixOS host](../how-to/add-a-nixos-host.md)
shows the two that each host needs. On a host of several clusters, the options of a further one begin
with ` + "`services.florete_NAME`" + `: see
[Run one host in two clusters](../how-to/run-one-host-in-two-clusters.md).
`)
	groups := map[string][]option{}
	for _, o := range all {
		rest := strings.TrimPrefix(o.Name, "services.florete.")
		group := ""
		for _, g := range optionGroups {
			if strings.HasPrefix(rest, g.prefix) && len(g.prefix) > len(group) {
				group = g.prefix
			}
		}
		groups[group] = append(groups[group], o)
	}
	for _, g := range optionGroups {
		of := groups[g.prefix]
		slices.SortFunc(of, func(o, p option) int { return strings.Compare(o.Name, p.Name) })
		if len(of) > 0 {
			fmt.Fprintf(&b, "\n## %s\n", g.title)
		}
		for _, o := range of {
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", heading(o.Name), strings.TrimSpace(o.Description))
			readOnly := ""
			if o.ReadOnly {
				readOnly = ", read-only"
			}
			fmt.Fprintf(&b, "- Type: %s%s\n", o.Type, readOnly)
			value(&b, "Default", o.Default)
			value(&b, "Example", o.Example)
		}
	}
	return b.String()
}

// heading escapes a name, since a part such as <name> would be HTML.
func heading(name string) string { return strings.ReplaceAll(name, "<", `\<`) }

// value writes a value in the line of a list, or in a block of code below it.
func value(b *strings.Builder, title, text string) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
	case strings.Contains(text, "\n"):
		fmt.Fprintf(b, "- %s:\n\n  ```nix\n  %s\n  ```\n", title, strings.ReplaceAll(text, "\n", "\n  "))
	default:
		fmt.Fprintf(b, "- %s: `%s`\n", title, text)
	}
}
