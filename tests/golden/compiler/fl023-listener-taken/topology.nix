# Two addresses for three services.
{ base, merge, ... }: merge base {
  hosts.beta = { loopback = "127.5.0.0/30"; callers."user/ann" = [ ]; };
  services.blog = { host = "alpha"; port = 1; listenPort = 80; };
  services.zine = { host = "alpha"; port = 2; listenPort = 80; };
  services.wiki.listenPort = 80;
  roles.reader.services = [ "blog" "wiki" "zine" ];
}
