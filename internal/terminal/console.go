package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Console is the terminal on which a program shows messages to a person and asks questions.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
}

// Confirm asks a question and returns nil if the person answers yes. For any other answer, and if
// there is no terminal, it returns an error. The error has the text that is passed as otherwise.
func (c Console) Confirm(question, otherwise string) error {
	if in, ok := c.In.(*os.File); ok {
		if _, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS); err != nil {
			return fmt.Errorf("no terminal to confirm it at: %s", otherwise)
		}
	}
	fmt.Fprint(c.Err, question, " [y/N] ")
	answer, _ := bufio.NewReader(c.In).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New(otherwise)
	}
	return nil
}
