# The ingress, whose proxy publishes services at public names.
{ on, me }:
on 2 {
  capabilities = [ "ingress" ];
  roles = [ "beacon" ];
  users = [ "bob" ];
  callers."user/bob" = me;
}
