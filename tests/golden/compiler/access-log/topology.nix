# A service whose connections are logged. The documents of other services do not change.
{ base, merge, ... }:
merge base {
  services.blog = {
    host = "beta";
    port = 8081;
    accessLog = "sampled";
  };
  services.chat = {
    host = "beta";
    port = 8082;
    accessLog = "off";
  };
  services.wiki.accessLog = "full";
  roles.reader.services = [
    "blog"
    "chat"
    "wiki"
  ];
}
