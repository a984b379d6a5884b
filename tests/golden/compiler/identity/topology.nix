# Services that learn their callers. The format of other hosts' documents does not change.
{ base, merge, ... }:
merge base {
  services.wiki = {
    protocol = "http";
    identity = "http";
    user = "wiki";
  };
  services.chat = {
    host = "beta";
    listenPort = 80;
    upstream = "unix:/run/chat.sock";
    identity = "proxy-v2";
  };
  services.blog = {
    host = "beta";
    port = 8081;
    identity = "none";
  };
  roles.reader.services = [
    "blog"
    "chat"
    "wiki"
  ];
}
