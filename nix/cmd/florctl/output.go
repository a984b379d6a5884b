package main

import (
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/atomicfile"
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
