package main

import (
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/terminal"
)

// output writes b to the path that an operator named, where "-" is standard output, and returns
// where to print messages about it: standard error if b went to standard output.
func output(cmd *cobra.Command, path string, mode fs.FileMode, b []byte) (messages io.Writer, err error) {
	printed, err := atomicfile.Output(path, mode, cmd.OutOrStdout(), func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
	return apart(cmd, printed), err
}

// apart returns where to print messages: standard error if printed says that standard output
// carries something else.
func apart(cmd *cobra.Command, printed bool) io.Writer {
	if printed {
		return cmd.ErrOrStderr()
	}
	return cmd.OutOrStdout()
}

// showing prints v as JSON, or calls text to print it.
type showing func(v any, text func(io.Writer) error) error

// shown adds the flag --json.
func shown(cmd *cobra.Command, usage string) showing {
	asJSON := cmd.Flags().Bool("json", false, usage)
	return func(v any, text func(io.Writer) error) error {
		if *asJSON {
			return terminal.PrintJSON(cmd.OutOrStdout(), v)
		}
		return text(cmd.OutOrStdout())
	}
}
