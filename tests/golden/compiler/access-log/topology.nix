# A service whose connections are logged. What nobody wrote it of has the documents that it had.
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
