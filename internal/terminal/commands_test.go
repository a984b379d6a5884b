package terminal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"host ad":             `prog host: no command "ad", did you mean "add"?`,
		"--in lab host ad":    `prog host: no command "ad", did you mean "add"?`,
		"host --in lab other": `prog host: no command "other", want one of ["add" "remove"]`,
		"host":                "",
		"host --in lab":       "",
		"host ad --help":      "",
		"host --odd":          "",
		"host add ad":         "",
		"hots":                "", // cobra refuses it
		"--odd":               "",
		"":                    "",
	} {
		root := &cobra.Command{Use: "prog"}
		root.PersistentFlags().String("in", "", "")
		host := &cobra.Command{Use: "host"}
		root.AddCommand(host)
		for _, name := range []string{"add", "remove"} {
			host.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
		}
		got := ""
		if err := terminal.RefuseUnknown(root, strings.Fields(line)); err != nil {
			got = fmt.Sprint(err)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
