package kit

import "net"

// AfterRead is a connection that calls the function Do after each Read. With it, a test can act
// between two reads.
type AfterRead struct {
	net.Conn
	Do func()
}

func (c AfterRead) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.Do()
	return n, err
}
