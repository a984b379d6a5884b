# The beacon tells the world about the services.
{ on, me }: on 2 {
  roles = [ "beacon" ];
  users = [ "bob" ];
  callers."user/bob" = me;
}
