package kit

import (
	"io"
	"net"
)

// Accept accepts connections from a listener until the listener is closed. For each connection it
// starts a goroutine, which calls serve and then closes the connection.
func Accept(l net.Listener, serve func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			serve(conn)
		}()
	}
}

// Echo sends all bytes that it reads from conn back on conn, until the connection is closed.
func Echo(conn net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}) // splice(2) would take a pipe for each connection
}
