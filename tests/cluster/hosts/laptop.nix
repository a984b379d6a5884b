{ on, me }:
on 5 {
  kind = "device";
  users = [ "alice" ];
  callers."user/alice" = me;
}
