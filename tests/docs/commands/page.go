package commands

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/florete/florete/internal/manual"
)

// page returns the reference page of a program in Markdown. It describes the commands in the
// groups of the program's help. The text intro comes below the title.
func page(root *cobra.Command, intro string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", root.Name(), strings.TrimSpace(intro))
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n**%s**\n\n", strings.TrimSuffix(g.Title, ":"))
		b.WriteString("| command | |\n| --- | --- |\n")
		for _, c := range inGroup(root, g.ID) {
			fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", c.CommandPath(), manual.Anchor(c), cell(c.Short))
		}
	}
	if flags := flagTable(sorted(root.PersistentFlags())); flags != "" {
		fmt.Fprintf(&b, "\n## Flags of every command\n\n%s", flags)
	}
	common := commonFlags(root)
	if len(common) > 0 {
		fmt.Fprintf(&b, "\n## Common flags\n\nMany commands have these flags, and name them below.\n\n%s", flagTable(common))
	}
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(g.Title, ":"))
		for _, c := range inGroup(root, g.ID) {
			section(&b, c, common)
		}
	}
	return []byte(b.String())
}

// sorted returns the flags that the reference page shows, sorted.
func sorted(flags *pflag.FlagSet) (all []*pflag.Flag) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && f.Name != "version" {
			all = append(all, f)
		}
	})
	return all
}

// commonFlags returns the flags that many commands have in the same form, sorted by name.
func commonFlags(root *cobra.Command) (all []*pflag.Flag) {
	const many = 8
	n := map[string]int{}
	for _, g := range root.Groups() {
		for _, c := range inGroup(root, g.ID) {
			for _, f := range sorted(c.LocalNonPersistentFlags()) {
				if n[key(f)]++; n[key(f)] == many {
					all = append(all, f)
				}
			}
		}
	}
	slices.SortFunc(all, func(f, g *pflag.Flag) int { return strings.Compare(f.Name, g.Name) })
	return all
}

// key returns a string that is equal for two flags if the reference page describes them in the same
// way.
func key(f *pflag.Flag) string {
	return strings.Join([]string{f.Name, f.Usage, f.DefValue, fmt.Sprint(required(f))}, "\x00")
}

func required(f *pflag.Flag) bool { return len(f.Annotations[cobra.BashCompOneRequiredFlag]) > 0 }

// inGroup returns the commands of a group that can be run, including sub-commands, in the order of
// the help. It leaves out commands that only group sub-commands.
func inGroup(root *cobra.Command, group string) (all []*cobra.Command) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		if c.Runnable() {
			all = append(all, c)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	for _, c := range root.Commands() {
		if c.GroupID == group {
			walk(c)
		}
	}
	return all
}

func section(b *strings.Builder, c *cobra.Command, common []*pflag.Flag) {
	fmt.Fprintf(b, "\n### %s\n\n```text\n%s\n```\n\n%s\n", c.CommandPath(), c.UseLine(), manual.Text(c))
	var own []*pflag.Flag
	var also []string
	for _, f := range sorted(c.LocalNonPersistentFlags()) {
		if slices.ContainsFunc(common, func(g *pflag.Flag) bool { return key(f) == key(g) }) {
			also = append(also, "`--"+f.Name+"`")
		} else {
			own = append(own, f)
		}
	}
	if len(own) > 0 {
		b.WriteString("\n" + flagTable(own))
	}
	if len(also) > 0 {
		fmt.Fprintf(b, "\n[Common flags](#common-flags): %s.\n", strings.Join(also, ", "))
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimSpace(c.Example), "\n  ", "\n"))
	}
}

// cell renders the text of a help as a cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(manual.Escape(strings.Join(strings.Fields(s), " ")), "|", `\|`)
}

// flagTable renders flags as a table.
func flagTable(flags []*pflag.Flag) string {
	if len(flags) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("| flag | default | |\n| --- | --- | --- |\n")
	for _, f := range flags {
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if value != "" {
			name += " " + value
		}
		byDefault := ""
		if !slices.Contains([]string{"", "[]", "false", "0", "0s"}, f.DefValue) {
			byDefault = "`" + f.DefValue + "`"
		}
		note := ""
		if required(f) {
			note = " Required."
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s.%s |\n", name, byDefault, strings.TrimSuffix(cell(capital(usage)), "."), note)
	}
	return b.String()
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
