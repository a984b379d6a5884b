package suggest

import (
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
)

// Group is a heading of a program's help, with its commands.
type Group struct {
	Title    string
	Commands []*cobra.Command
}

// Add adds commands in groups to a program. Examples are by the words of a command after the
// program's name, and take effect where the command has none of its own.
func Add(root *cobra.Command, examples map[string]string, groups ...Group) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.Title, Title: g.Title + ":"})
		for _, c := range g.Commands {
			c.GroupID = g.Title
			root.AddCommand(c)
		}
	}
	for words, example := range examples {
		c, rest, err := root.Find(regexp.MustCompile(`\S+`).FindAllString(words, -1))
		if err != nil || len(rest) > 0 || c.Example != "" {
			panic(fmt.Sprintf("example of %q: no such command, or it has one: %v", words, err))
		}
		c.Example = "  " + example
	}
}

// Lacking names what a program's commands lack: a group, an example, or a flag that its example
// uses.
func Lacking(root *cobra.Command) (all []string) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.HasParent() && c.Parent() == root && c.GroupID == "" {
			all = append(all, c.CommandPath()+": a group")
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if !c.Runnable() || c.Hidden {
			return
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
