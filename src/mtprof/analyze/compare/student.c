/* SPDX-License-Identifier: Apache-2.0
 *
 * Student's t, see student.h: the regularised incomplete beta function by its continued fraction
 * (evaluated from the front, after Lentz), inverted by halving.
 */
#include "mtprof/analyze/compare/student.h"

#include <math.h>

enum {
    MOST_TERMS = 500,
    HALVINGS = 200
};

/* The fraction converges fast for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double h = d;
    for (int m = 1; m <= MOST_TERMS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double before = h;
        const double terms[] = {even, odd};
        for (int i = 0; i < 2; i++) {
            d = 1 + terms[i] * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + terms[i] / c;
            c = fabs(c) < tiny ? tiny : c;
            h *= c * d;
        }
        if (fabs(h - before) < 1e-15 * fabs(h)) {
            break;
        }
    }
    return h;
}

static double incomplete_beta(double a, double b, double x)
{
    if (x <= 0 || x >= 1) {
        return x <= 0 ? 0 : 1;
    }
    int sign; /* lgamma() would write a global */
    double scale = lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign);
    double front = exp(scale + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) {
        return front * beta_fraction(a, b, x) / a;
    }
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double mtprof__student_t(double alpha, double df)
{
    double low = 0, high = 1;
    /* P(|T| > t) = I(df / (df + t^2); df / 2, 1/2) */
    while (incomplete_beta(df / 2, 0.5, df / (df + high * high)) > alpha && high < 1e12) {
        high *= 2;
    }
    for (int i = 0; i < HALVINGS && high - low > 1e-12 * high; i++) {
        double t = (low + high) / 2;
        if (incomplete_beta(df / 2, 0.5, df / (df + t * t)) > alpha) {
            low = t;
        } else {
            high = t;
        }
    }
    return high;
}

double mtprof__noise_bound(mtprof__sample a, mtprof__sample b, double alpha)
{
    if (a.n < 2 || b.n < 2) {
        return NAN;
    }
    double va = a.deviation * a.deviation / a.n, vb = b.deviation * b.deviation / b.n;
    if (va + vb <= 0) {
        return 0;
    }
    double df = (va + vb) * (va + vb) / (va * va / (a.n - 1) + vb * vb / (b.n - 1));
    return mtprof__student_t(alpha, df) * sqrt(va + vb);
}
