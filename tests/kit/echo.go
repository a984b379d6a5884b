package kit

import (
	"io"
	"net"
)

// Accept calls serve with each connection to l in a goroutine and then closes it, until l is
// closed.
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

// Echo sends back everything that it reads.
func Echo(conn net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}) // splice(2) would take a pipe for each connection
}
