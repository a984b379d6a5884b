{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.gamma = {
    address = "2001:db8::3";
    sshHostKey = key "gamma";
  };
  services.wiki = {
    host = "alpha";
    upstream = "192.0.2.2:8080";
  };
  services.blog = {
    host = "alpha";
    listenPort = 81;
    upstream = "[2001:db8::3]:8080";
  };
  services.shop = {
    host = "alpha";
    listenPort = 82;
    upstream = "beta:8080";
  };
  roles.reader.services = [
    "wiki"
    "blog"
    "shop"
  ];
}
