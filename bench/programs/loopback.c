/* A preload library for daemons that cannot be told to listen on loopback only
 * (xrootd): every bind to "any address" becomes one to the loopback address. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

int bind(int fd, const struct sockaddr *address, socklen_t len) {
    static int (*next)(int, const struct sockaddr *, socklen_t);
    if (!next) next = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
    if (address->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in here = *(const struct sockaddr_in *)address;
        if (here.sin_addr.s_addr == htonl(INADDR_ANY)) here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return next(fd, (struct sockaddr *)&here, sizeof here);
    }
    if (address->sa_family == AF_INET6 && len >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 here = *(const struct sockaddr_in6 *)address;
        /* ::ffff:127.0.0.1, because a client comes by IPv4 to such a double socket. */
        if (!memcmp(&here.sin6_addr, &in6addr_any, sizeof in6addr_any)) {
            memset(&here.sin6_addr, 0, sizeof here.sin6_addr);
            here.sin6_addr.s6_addr[10] = here.sin6_addr.s6_addr[11] = 0xff;
            here.sin6_addr.s6_addr[12] = 127;
            here.sin6_addr.s6_addr[15] = 1;
        }
        return next(fd, (struct sockaddr *)&here, sizeof here);
    }
    return next(fd, address, len);
}
