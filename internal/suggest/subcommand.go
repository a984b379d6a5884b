package suggest

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// Command refuses the words of a command line that lead to a command of which there are only
// sub-commands, and name none of these: cobra prints help for them, and succeeds. All other
// words are for Execute to judge.
func Command(root *cobra.Command, words []string) error {
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
	if name := Name(word, names); name != "" {
		meant = fmt.Sprintf("did you mean %q?", name)
	}
	return fmt.Errorf("%s: no command %q, %s", c.CommandPath(), word, meant)
}
