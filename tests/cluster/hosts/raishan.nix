# The beacon tells the world about the services: it takes in strangers.
{ on, me }:
on 2 {
  capabilities = [ "ingress" ];
  roles = [ "beacon" ];
  users = [ "bob" ];
  callers."user/bob" = me;
}
