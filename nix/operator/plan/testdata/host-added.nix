{
  base,
  merge,
  key,
}:
{
  after = merge base {
    hosts.gamma = {
      address = "192.0.2.3";
      sshHostKey = key "gamma";
      users = [ "ben" ];
      roles = [ "reader" ];
      capabilities = [ "ingress" ];
    };
    services.blog = {
      host = "gamma";
      port = 80;
      visibility = "public";
    };
    roles.reader.services = [
      "blog"
      "wiki"
    ];
  };
}
