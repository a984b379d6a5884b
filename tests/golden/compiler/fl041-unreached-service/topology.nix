{ base, merge, ... }:
merge base {
  services.log = {
    host = "beta";
    port = 3;
  };
  services.news = {
    host = "beta";
    port = 4;
  };
  services.blog = {
    host = "beta";
    port = 1;
  };
  services.shop = {
    host = "beta";
    port = 2;
  };
  roles.buyer.services = [ "shop" ];
}
