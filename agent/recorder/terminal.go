package recorder

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/conns"
)

// terminal runs a shell or command in a terminal of its own, and connects that terminal with the one
// of sshd. It records what the person sees. What the person types is recorded only where it is shown,
// so passwords are not.
func (l *line) terminal(cmd *exec.Cmd) (int, error) {
	outer := os.Stdin
	inner, name, err := openTerminal()
	if err != nil {
		return 0, err
	}
	defer inner.Close()
	was, err := unix.IoctlGetTermios(int(outer.Fd()), unix.TCGETS)
	if err != nil {
		return 0, fmt.Errorf("terminal of sshd: %w", err)
	}
	slave, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return 0, err
	}
	l.copySize(outer, inner)
	err = unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, was)
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		cmd.Env = append(cmd.Env, terminalVariable+"="+name)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		fmt.Fprintln(outer, Notice)
		err = cmd.Start()
	}
	slave.Close()
	if err != nil {
		return 0, err
	}
	raw := *was
	makeRaw(&raw)
	_ = unix.IoctlSetTermios(int(outer.Fd()), unix.TCSETS, &raw)
	defer func() { _ = unix.IoctlSetTermios(int(outer.Fd()), unix.TCSETS, was) }()

	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case <-resized:
				l.copySize(outer, inner)
			case <-l.lost: // the recorder ends the session
				_ = inner.Close()
				return
			case <-ended:
				return
			}
		}
	}()
	go func() { _, _ = io.Copy(inner, outer) }()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(&tee{l, os.Stdout}, inner) // until no process has the terminal open
		_ = inner.Close()
	}()
	err = cmd.Wait()
	_ = inner.SetReadDeadline(time.Now().Add(lastWords))
	<-copied
	return exitStatus(err)
}

// lastWords is the time for which Run reads from a terminal that a process in the background keeps
// open after the shell has ended.
const lastWords = time.Second

// openTerminal creates a pseudoterminal (pts(4)). It returns the side of the program that controls
// it, and the path of the other side.
func openTerminal() (f *os.File, name string, err error) {
	if f, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, "", err
	}
	var n int
	err = conns.Control(f, func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		}
		return err
	})
	if err != nil {
		f.Close()
		return nil, "", fmt.Errorf("/dev/ptmx: %w", err)
	}
	return f, fmt.Sprintf("/dev/pts/%d", n), nil
}

// makeRaw sets the modes of a terminal as cfmakeraw(3) does.
func makeRaw(t *unix.Termios) {
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
}

// size returns the columns and rows of a terminal, or zero.
func size(terminal *os.File) (width, height int) {
	w, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(w.Col), int(w.Row)
}

// copySize gives the inner terminal the size of the outer one, and records it.
func (l *line) copySize(outer, inner *os.File) {
	w, err := unix.IoctlGetWinsize(int(outer.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return
	}
	_ = conns.Control(inner, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, w) })
	_ = l.send(frameResize, numbers(int(w.Col), int(w.Row)))
}
