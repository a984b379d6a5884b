package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// confirmed has the operator answer a question. Its error, otherwise, is that of any other answer
// than yes, and where there is no terminal to ask at.
func confirmed(cmd *cobra.Command, question, otherwise string) error {
	if in, ok := cmd.InOrStdin().(*os.File); ok {
		if _, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS); err != nil {
			return fmt.Errorf("no terminal to confirm it at: %s", otherwise)
		}
	}
	fmt.Fprint(cmd.ErrOrStderr(), question, " [y/N] ")
	answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New(otherwise)
	}
	return nil
}
