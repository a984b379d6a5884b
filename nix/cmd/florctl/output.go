package main

import (
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/terminal"
)

// output writes b to the path that an operator named, - for standard output, and returns where
// messages about it belong: not where the output is.
func output(cmd *cobra.Command, path string, mode fs.FileMode, b []byte) (messages io.Writer, err error) {
	printed, err := atomicfile.Output(path, mode, cmd.OutOrStdout(), func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
	return apart(cmd, printed), err
}

// apart returns where messages belong, given whether standard output has something else.
func apart(cmd *cobra.Command, printed bool) io.Writer {
	if printed {
		return cmd.ErrOrStderr()
	}
	return cmd.OutOrStdout()
}

// showing prints a value as JSON, or else has text print it.
type showing func(v any, text func(io.Writer) error) error

// shown adds the flag for JSON.
func shown(cmd *cobra.Command, usage string) showing {
	asJSON := cmd.Flags().Bool("json", false, usage)
	return func(v any, text func(io.Writer) error) error {
		if *asJSON {
			return terminal.PrintJSON(cmd.OutOrStdout(), v)
		}
		return text(cmd.OutOrStdout())
	}
}
