package conns

import "syscall"

// Control calls f with the descriptor of a connection or a file, and returns the error of f. If c is
// closed, it returns an error and does not call f. In contrast to the method Fd of a file, it leaves
// the file as it is, so that reads can be interrupted.
func Control(c syscall.Conn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	if closed := raw.Control(func(fd uintptr) { err = f(int(fd)) }); closed != nil {
		return closed
	}
	return err
}
