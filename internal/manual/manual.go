// Package manual writes the documentation of a program's commands from their help. It writes a
// reference page in Markdown, and manual pages for man(1).
package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// Markdown returns the reference page of a program in Markdown. It describes the commands in the
// groups of the program's help. The text intro comes below the title.
func Markdown(root *cobra.Command, intro string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", root.Name(), strings.TrimSpace(intro))
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n**%s**\n\n", strings.TrimSuffix(g.Title, ":"))
		b.WriteString("| command | |\n| --- | --- |\n")
		for _, c := range inGroup(root, g.ID) {
			fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", c.CommandPath(), anchor(c), cell(c.Short))
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

func anchor(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func section(b *strings.Builder, c *cobra.Command, common []*pflag.Flag) {
	fmt.Fprintf(b, "\n### %s\n\n```text\n%s\n```\n\n%s\n", c.CommandPath(), c.UseLine(), text(description(c)))
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
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.TrimSpace(unindent(c.Example)))
	}
}

// description returns the long help of a command. If there is none, it returns the short help as a
// sentence.
func description(c *cobra.Command) string {
	if c.Long != "" {
		return strings.TrimSpace(c.Long)
	}
	return strings.TrimSuffix(c.Short, ".") + "."
}

// text renders the text of a help as Markdown. Indented lines become a block of code. In all other
// lines, characters with a meaning in Markdown are escaped.
func text(s string) string {
	var out []string
	code := false
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, "\n ")
		indented := strings.HasPrefix(line, "  ") && (code || len(out) > 0 && out[len(out)-1] == "")
		switch {
		case indented && !code:
			out = append(out, "```text")
		case !indented && code && line == "":
			out = append(out, "```")
		}
		code = indented || code && line != ""
		if code {
			out = append(out, unindent(line))
		} else {
			out = append(out, escape(line))
		}
	}
	if code {
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}

var special = strings.NewReplacer("<", "&lt;", "*", `\*`)

func escape(s string) string { return special.Replace(s) }

// cell renders the text of a help as a cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(escape(strings.Join(strings.Fields(s), " ")), "|", `\|`)
}

var indent = regexp.MustCompile(`(?m)^  `)

func unindent(s string) string { return indent.ReplaceAllString(s, "") }

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

// Command returns a hidden command that writes the program's manual pages. Builds of packages and
// bundles run it.
func Command() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages of this program into a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return Write(cmd.Root(), args[0]) },
	}
}

// Write writes the manual pages of a program, one for each command, to the existing directory dir.
// The pages contain no date and no version, so that they change only with the help. Write modifies
// the commands of root, so the program must not run them afterwards.
func Write(root *cobra.Command, dir string) error {
	root.DisableAutoGenTag = true
	for _, c := range root.Commands() {
		if c.Name() == "completion" || c.Name() == "help" {
			root.RemoveCommand(c)
		}
	}
	return write(root, dir)
}

func write(c *cobra.Command, dir string) error {
	c.Long = text(description(c))
	var page bytes.Buffer
	if err := doc.GenMan(c, &doc.GenManHeader{Section: "1", Date: &time.Time{}, Source: "Florete", Manual: "Florete"}, &page); err != nil {
		return err
	}
	undated := bytes.Replace(page.Bytes(), []byte(`"`+time.Time{}.Format("Jan 2006")+`"`), []byte(`""`), 1)
	if err := os.WriteFile(filepath.Join(dir, anchor(c)+".1"), undated, 0o644); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if err := write(sub, dir); err != nil {
			return err
		}
	}
	return nil
}
