package terminal

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"
)

// CommandGroup is a group of commands under a common heading in the help of a program.
type CommandGroup struct {
	Title    string
	Commands []*cobra.Command
}

// AddCommands adds groups of commands to a program, in the order of its help. The map examples
// contains the example of each command, by its command line without the name of the program, such
// as "token list". AddCommands panics if there is no such command, or if it already has an example.
func AddCommands(root *cobra.Command, examples map[string]string, groups ...CommandGroup) {
	cobra.EnableCommandSorting = false
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

// RefuseUnknown returns an error if words contain an unknown sub-command of a command that only
// groups others. The caller must call it before Execute, because cobra prints help in this case and
// exits successfully. All other errors are left to Execute.
func RefuseUnknown(root *cobra.Command, words []string) error {
	c, rest, err := root.Find(words)
	if err != nil || c.Runnable() || !c.HasSubCommands() || !c.HasParent() || c.ParseFlags(rest) != nil || len(c.Flags().Args()) == 0 {
		return nil
	}
	if help, err := c.Flags().GetBool("help"); err == nil && help {
		return nil
	}
	word := c.Flags().Arg(0)
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	slices.Sort(names)
	meant := fmt.Sprintf("want one of %q", names)
	if name := Suggest(word, names); name != "" {
		meant = fmt.Sprintf("did you mean %q?", name)
	}
	return fmt.Errorf("%s: no command %q, %s", c.CommandPath(), word, meant)
}
