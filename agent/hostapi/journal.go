package hostapi

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"time"
)

// tail writes the last lines of a unit's journal as they come. The program is
// killed when ctx ends or w takes no more.
func tail(ctx context.Context, w io.Writer, program, unit string, lines int) error {
	cmd := exec.CommandContext(ctx, program, "--unit="+unit, "--lines="+strconv.Itoa(lines),
		"--output=short-iso", "--no-pager", "--quiet")
	cmd.Stdout = w
	cmd.WaitDelay = time.Second
	return cmd.Run()
}

// limited writes at most so many bytes.
type limited struct {
	io.Writer
	left int
}

var errTooMuch = errors.New("more than an answer may have")

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		return 0, errTooMuch
	}
	l.left -= len(b)
	return l.Writer.Write(b)
}
