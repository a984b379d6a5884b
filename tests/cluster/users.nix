{
  alice.roles = [ "writer" ];
  bob.roles = [ "reader" ];
}
