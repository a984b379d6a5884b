// Package manual writes the manual pages of a program, for man(1), from the help of its commands.
package manual

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Anchor returns the name of a command in links and files, such as "flor-sync-arm".
func Anchor(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Text returns the long help of a command as Markdown or, if there is none, the short help as a
// sentence. Indented lines become a block of code. In all other lines, characters with a meaning in
// Markdown are escaped.
func Text(c *cobra.Command) string {
	s := strings.TrimSuffix(c.Short, ".") + "."
	if c.Long != "" {
		s = strings.TrimSpace(c.Long)
	}
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
			out = append(out, strings.TrimPrefix(line, "  "))
		} else {
			out = append(out, Escape(line))
		}
	}
	if code {
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}

var special = strings.NewReplacer("<", "&lt;", "*", `\*`)

// Escape escapes the characters of a text that have a meaning in Markdown.
func Escape(s string) string { return special.Replace(s) }

// Command returns a hidden command that writes the program's manual pages. Builds of packages and
// bundles run it.
func Command() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages of this program into a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return write(cmd.Root(), args[0]) },
	}
}

// write writes the manual pages of a program, one for each command, to the existing directory dir.
// The pages contain no date and no version, so that they change only with the help. write modifies
// the commands of root, so the program must not run them afterwards.
func write(root *cobra.Command, dir string) error {
	root.DisableAutoGenTag = true
	for _, c := range root.Commands() {
		if c.Name() == "completion" || c.Name() == "help" {
			root.RemoveCommand(c)
		}
	}
	return writePage(root, dir)
}

// writePage writes the pages of a command and of its sub-commands.
func writePage(c *cobra.Command, dir string) error {
	c.Long = Text(c)
	var page bytes.Buffer
	if err := doc.GenMan(c, &doc.GenManHeader{Section: "1", Date: &time.Time{}, Source: "Florete", Manual: "Florete"}, &page); err != nil {
		return err
	}
	undated := bytes.Replace(page.Bytes(), []byte(`"`+time.Time{}.Format("Jan 2006")+`"`), []byte(`""`), 1)
	if err := os.WriteFile(filepath.Join(dir, Anchor(c)+".1"), undated, 0o644); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if err := writePage(sub, dir); err != nil {
			return err
		}
	}
	return nil
}
