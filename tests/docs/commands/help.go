package commands

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// lackingHelp returns the faults in the help of a program's commands, one line for each.
// Each command must have a group and a short help that begins with a verb. A command that can be
// run must also have a long help, and an example that uses only its flags.
func lackingHelp(root *cobra.Command) (all []string) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.HasParent() && c.Parent() == root && c.GroupID == "" && !c.Hidden {
			all = append(all, c.CommandPath()+": a group")
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if !isHelp.MatchString(c.Short) {
			all = append(all, fmt.Sprintf("%s: a short help that begins with a verb and has no full stop: %q", c.CommandPath(), c.Short))
		}
		if !c.Runnable() || c.Hidden {
			return
		}
		if !strings.HasSuffix(c.Long, ".") && !strings.HasSuffix(c.Long, ")") && !strings.HasSuffix(c.Long, "ID") && !strings.Contains(c.Long, "\n  ") {
			all = append(all, c.CommandPath()+": a long help of sentences")
		}
		if c.Example == "" {
			all = append(all, c.CommandPath()+": an example")
		}
		for _, m := range regexp.MustCompile(`--([a-z0-9-]+)`).FindAllStringSubmatch(c.Example, -1) {
			if c.Flags().Lookup(m[1]) == nil && c.InheritedFlags().Lookup(m[1]) == nil {
				all = append(all, c.CommandPath()+": flag --"+m[1]+" of its example")
			}
		}
	}
	walk(root)
	return all
}

// isHelp matches a short help in the required form: it begins with a capital letter and an
// imperative verb, and has no full stop.
var isHelp = regexp.MustCompile(`^[A-Z][a-z]*[a-rt-z] [^.]*[^.]$`)
