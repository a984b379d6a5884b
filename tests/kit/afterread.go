package kit

import "net"

// AfterRead is a connection that does something each time it has read.
type AfterRead struct {
	net.Conn
	Do func()
}

func (c AfterRead) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.Do()
	return n, err
}
